"""Alert rules and dashboard name metrics and labels that there are.

`promtool`, of Debian's package prometheus, checks their syntax if it is
installed.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import requests
import yaml

from manila_lite import conf as options, metrics
from manila_lite.api.metrics_page import MetricsPage
from manila_lite.cmd import registered
from manila_lite.cmd.build.database_metrics import PROCESS_METRICS
from tests.support.processes import free_port

FOLDER = pathlib.Path(__file__).resolve().parents[3] / 'etc/manila_lite'
ALERTS = FOLDER / 'prometheus-alerts.yaml'
DASHBOARD = FOLDER / 'grafana-dashboard.json'

SAMPLES = {
    metric.name + suffix: metric
    for metric in PROCESS_METRICS
    for suffix in (
        ('_bucket', '_sum', '_count') if metric.kind == 'histogram' else ('',)
    )
}


def rules():
    (group,) = yaml.safe_load(ALERTS.read_text())['groups']
    return group['rules']


def targets():
    """Yield title, expression and legend of all lines of the dashboard."""
    for panel in json.loads(DASHBOARD.read_text())['panels']:
        for target in panel.get('targets', ()):
            yield panel['title'], target['expr'], target['legendFormat']


EXPRESSIONS = [
    *((rule['alert'], rule['expr']) for rule in rules()),
    *((title, expression) for title, expression, _ in targets()),
]


@pytest.mark.parametrize('expression', [found for _, found in EXPRESSIONS])
def test_expression_names_metrics_and_labels_that_exist(expression):
    names = re.findall(r'manila_lite_\w+', expression)
    assert names
    assert set(names) <= SAMPLES.keys()
    known = {label for name in names for label in SAMPLES[name].labels}
    matchers = re.findall(r'[{,]\s*(\w+)\s*(?:!?=~?|!~)', expression)
    groups = re.findall(r'(?:by|on) \(([^)]*)\)', expression)
    used = {*matchers, *(name for one in groups for name in one.split(', '))}
    assert used <= known | {'le', 'instance'}


@pytest.mark.parametrize(
    'expression, text',
    [
        *((rule['expr'], ' '.join(rule['annotations'].values())) for rule in rules()),
        *((expression, legend) for _, expression, legend in targets()),
    ],
)
def test_text_shows_labels_that_its_expression_leaves(expression, text):
    shown = set(re.findall(r'{{\s*(?:\$labels\.)?(\w+)\s*}}', text))
    groups = re.findall(r'by \(([^)]*)\)', expression)
    left = (
        set(groups[0].split(', '))
        if groups
        else {
            label
            for name in re.findall(r'manila_lite_\w+', expression)
            for label in SAMPLES[name].labels
        }
    )
    assert shown <= left | {'instance'}


def test_every_metric_is_on_the_dashboard_or_in_an_alert():
    text = ' '.join(expression for _, expression in EXPRESSIONS)
    used = {SAMPLES[name] for name in re.findall(r'manila_lite_\w+', text)}
    unused = {metric.name for metric in PROCESS_METRICS} - {one.name for one in used}
    assert unused == {'manila_lite_pool_pending_bytes'}


# promtool


@pytest.fixture
def promtool():
    found = shutil.which('promtool')
    if not found:
        reason = 'promtool is not installed (package prometheus)'
        if os.environ.get('CI'):
            pytest.fail(reason)
        pytest.skip(reason)

    def run(*args, **kwargs):
        done = subprocess.run(
            [found, *map(str, args)],
            capture_output=True,
            text=True,
            check=False,
            **kwargs,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return run


def test_promtool_accepts_the_alert_rules(promtool):
    promtool('check', 'rules', '--lint-fatal', ALERTS)


def test_alert_fires_for_an_old_backup_and_for_none(promtool, tmp_path):
    series = 'manila_lite_backup_age_seconds{kind="daily"}'
    fired = {
        'exp_labels': {
            'alertname': 'ManilaLiteBackupOld',
            'kind': 'daily',
            'severity': 'warning',
        },
        'exp_annotations': {
            'summary': 'The newest daily backup of the controller is older than '
            '36 hours.'
        },
    }
    rule = {'alertname': 'ManilaLiteBackupOld'}

    def case(values, alerts):
        return {
            'interval': '1m',
            'input_series': [{'series': series, 'values': values}],
            'alert_rule_test': [
                {**rule, 'eval_time': '59m', 'exp_alerts': []},
                {**rule, 'eval_time': '61m', 'exp_alerts': alerts},
            ],
        }

    (tmp_path / 'tests.yaml').write_text(
        yaml.safe_dump(
            {
                'rule_files': [str(ALERTS)],
                'tests': [
                    case('129660x70', [fired]),
                    case('+Inf ' * 70, [fired]),
                    case('90000x70', []),
                ],
            }
        )
    )
    promtool('test', 'rules', tmp_path / 'tests.yaml')


def test_alert_fires_for_the_first_row_in_error(promtool, tmp_path):
    """Its series is not there an hour before."""
    labels = {
        'alertname': 'ManilaLiteInError',
        'resource': 'share_instance',
        'status': 'error',
        'severity': 'info',
    }
    series = 'manila_lite_unhealthy{resource="share_instance",status="error"}'
    fired = {
        'exp_labels': labels,
        'exp_annotations': {
            'summary': 'More of share_instance are error than an hour ago.'
        },
    }
    rule = {'alertname': 'ManilaLiteInError'}
    file = tmp_path / 'test.yaml'
    file.write_text(
        yaml.safe_dump(
            {
                'rule_files': [str(ALERTS)],
                'evaluation_interval': '1m',
                'tests': [
                    {
                        'interval': '1m',
                        'input_series': [{'series': series, 'values': '_x120 1x200'}],
                        'alert_rule_test': [
                            {**rule, 'eval_time': '100m', 'exp_alerts': []},
                            {**rule, 'eval_time': '130m', 'exp_alerts': [fired]},
                            {**rule, 'eval_time': '200m', 'exp_alerts': []},
                        ],
                    }
                ],
            }
        )
    )
    promtool('test', 'rules', file)


def test_alert_fires_for_a_replica_that_is_not_synchronised(promtool, tmp_path):
    """API and scheduler show it both; it ends with the next sync."""
    series = 'manila_lite_replica_sync_oldest_age_seconds'
    rule = {'alertname': 'ManilaLiteReplicaNotSynced'}
    fired = {
        'exp_labels': {**rule, 'host': 'node@beta', 'severity': 'warning'},
        'exp_annotations': {
            'summary': 'A replica on node@beta was synchronised 1h 10m 0s ago.'
        },
    }
    file = tmp_path / 'test.yaml'
    file.write_text(
        yaml.safe_dump(
            {
                'rule_files': [str(ALERTS)],
                'evaluation_interval': '1m',
                'tests': [
                    {
                        'interval': '1m',
                        'input_series': [
                            {'series': f'{series}{{{labels}}}', 'values': values}
                            for labels, values in (
                                # It grows by a minute each minute.
                                ('host="node@beta",instance="api"', '0+60x70 60x60'),
                                (
                                    'host="node@beta",instance="scheduler"',
                                    '0+60x70 60x60',
                                ),
                                ('host="node@gamma",instance="api"', '300x130'),
                            )
                        ],
                        'alert_rule_test': [
                            {**rule, 'eval_time': '60m', 'exp_alerts': []},
                            {**rule, 'eval_time': '70m', 'exp_alerts': [fired]},
                            {**rule, 'eval_time': '80m', 'exp_alerts': []},
                        ],
                    }
                ],
            }
        )
    )
    promtool('test', 'rules', file)


def test_promtool_accepts_the_expressions_of_the_dashboard(promtool, tmp_path):
    recorded = [
        {
            'record': f'line:{number}',
            'expr': expression.replace('$__rate_interval', '5m'),
        }
        for number, (_, expression, _) in enumerate(targets())
    ]
    file = tmp_path / 'rules.yaml'
    file.write_text(yaml.safe_dump({'groups': [{'name': 'all', 'rules': recorded}]}))
    promtool('check', 'rules', file)


def test_promtool_accepts_the_page(promtool):
    port = free_port()
    page = MetricsPage([metrics.counted])
    (server,) = registered.servers(options.new(), port, {}, page)
    server.start()
    try:
        url = f'http://127.0.0.1:{port}'
        requests.get(f'{url}/healthcheck', timeout=10)
        text = requests.get(f'{url}/metrics', timeout=10).text
    finally:
        server.stop(10)
    promtool('check', 'metrics', input=text)
