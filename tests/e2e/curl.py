"""curl, as far as the documentation uses it. A status of 400 or more is a failure; of a stream it takes one line."""

from __future__ import annotations

import argparse
import sys
import urllib.error
import urllib.request


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-X")
    parser.add_argument("-N", action="store_true")
    parser.add_argument("-d")
    parser.add_argument("--json")
    given = parser.parse_args()
    headers = dict(header.split(": ", 1) for header in given.H)
    if given.json:
        headers["Content-Type"] = "application/json"
    data = given.d or given.json
    request = urllib.request.Request(given.url, data and data.encode(), headers, method=given.X)
    try:
        with urllib.request.urlopen(request) as answer:
            sys.stdout.write((answer.readline() if given.N else answer.read()).decode())
    except urllib.error.HTTPError as error:
        sys.stderr.write(error.read().decode())
        return 22
    return 0


sys.exit(main())
