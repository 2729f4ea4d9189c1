"""An SMB client that sends any name as it is, run by the Python of Debian.

    python3 raw_smb.py HOST SHARE USER PASSWORD < calls

Calls are JSON: lists of a method of Samba's client and its arguments. It
prints what each has returned, or null if the server has refused it. smbclient
would take `..` out of names before it sends them.
"""

import json
import sys


def main(host: str, share: str, user: str, password: str) -> None:
    # The package python3-samba, which Samba needs, is not in a virtual
    # environment.
    import samba
    from samba import credentials, param
    from samba.samba3 import libsmb_samba_internal as libsmb, param as s3param

    settings = s3param.get_context()
    settings.load('/dev/null')
    known = credentials.Credentials()
    known.guess(param.LoadParm())
    known.set_username(user)
    known.set_password(password)
    known.set_kerberos_state(credentials.DONT_USE_KERBEROS)
    answers: list[str | None] = []
    calls = json.load(sys.stdin)
    try:
        client = libsmb.Conn(host, share, settings, known)
        for method, *arguments in calls:
            try:
                answers.append(repr(getattr(client, method)(*arguments)))
            except samba.NTSTATUSError:
                answers.append(None)
    except samba.NTSTATUSError:
        answers = [None] * len(calls)
    print(json.dumps(answers))


if __name__ == '__main__':
    main(*sys.argv[1:])
