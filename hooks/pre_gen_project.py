"""Second line of the check of the answers: replayed answers and API calls pass it too.

The text below is filled in when cookiecutter renders this hook, so nothing is imported from the
template.
"""

import sys

problems = "{{ cookiecutter | problems | python }}"

if problems:
    sys.exit(f"Error: {problems}")
