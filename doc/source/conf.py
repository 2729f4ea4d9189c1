"""Sphinx configuration; tables of the pages are generated from the code."""

from importlib import metadata
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / '_ext'), str(HERE.parents[1])]

project = 'manila_lite'
release = version = metadata.version('manila_lite')
extensions = ['from_code', 'reno.sphinxext']
nitpicky = True  # an unknown reference fails the build
highlight_language = 'none'
html_theme = 'alabaster'
html_theme_options = {
    'description': 'A control plane for shared file systems',
    'page_width': '1120px',
    'fixed_sidebar': True,
}
html_sidebars = {'**': ['about.html', 'navigation.html', 'searchbox.html']}
html_static_path = ['_static']
html_show_copyright = False
html_show_sourcelink = False
