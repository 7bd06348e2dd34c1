"""The style of the page: light, or dark where the reader's system is."""

STYLE = """
:root { color-scheme: light dark; --back: #fff; --ink: #1d2129; --dim: #667; --grid: #e3e5ea;
  --line: #0b63ce; --soft: #9ec5f4; --bad: #b3261e; --c0: #d55e00; --c1: #0072b2; --c2: #009e73;
  --c3: #b5892a; --c4: #a3528a; --c5: #3d8fc4; --c6: #777; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14171c; --ink: #e6e8ec; --dim: #9aa2ad; --grid: #2c323b; --line: #6cb0ff;
    --soft: #2f5687; --bad: #ff8a80; --c0: #ff9d57; --c1: #5db5ec; --c2: #4fd1a5; --c3: #e8c35c;
    --c4: #df9dca; --c5: #9bd3f5; --c6: #aaa; } }
body { margin: 0 auto; padding: 1rem; max-width: 1000px; background: var(--back);
  color: var(--ink); font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1rem; margin: 1.2rem 0 0; }
p { margin: .2rem 0; }
.dim { color: var(--dim); }
dt { float: left; clear: left; min-width: 9rem; color: var(--dim); }
dd { margin-left: 9.5rem; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; }
svg text { font-size: 11px; fill: var(--dim); }
.right { text-anchor: end; }
.centre { text-anchor: middle; }
.grid { stroke: var(--grid); }
.line { fill: none; stroke: var(--line); stroke-width: 1.5; }
.bar { fill: var(--line); }
.soft { fill: var(--soft); }
line.mark { stroke: var(--ink); stroke-dasharray: 3 3; }
svg text.mark { fill: var(--ink); }
line.skip, line.end { stroke: var(--bad); }
svg text.skip, svg text.end { fill: var(--bad); }
.c0 { fill: var(--c0); color: var(--c0); }
.c1 { fill: var(--c1); color: var(--c1); }
.c2 { fill: var(--c2); color: var(--c2); }
.c3 { fill: var(--c3); color: var(--c3); }
.c4 { fill: var(--c4); color: var(--c4); }
.c5 { fill: var(--c5); color: var(--c5); }
.c6 { fill: var(--c6); color: var(--c6); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
"""
