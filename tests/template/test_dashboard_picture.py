"""docs/dashboard.svg shows the dashboard that the command prints."""

import json
import re

from tools import dashboard as picture
from ytstream_tools.status import dashboard


def test_the_picture_is_of_the_dashboard() -> None:
    drawn = picture.picture(json.loads(dashboard.text()))
    assert picture.PICTURE.read_text(encoding="utf-8") == drawn, "call `python -m tools.dashboard`"


def test_each_panel_is_on_it_with_its_limit() -> None:
    drawn = picture.picture(json.loads(dashboard.text()))
    assert re.findall(r'class="title"[^>]*>([^<]+)<', drawn) == [
        panel.title for panel in dashboard.PANELS
    ]
    limits = [panel for panel in dashboard.PANELS if panel.limit is not None]
    assert drawn.count('class="limit"') == len(limits)
