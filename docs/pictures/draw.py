"""Draw the pictures of docs/concepts.md. Run it as a script."""

from pathlib import Path

FOLDER = Path(__file__).parent
STYLE = """<style>
text { font: 14px system-ui, sans-serif; fill: #1c2733 } .small { font-size: 12px; fill: #52606d }
.box { fill: #eef3f7; stroke: #7b8794 } .good { fill: #cdeccd; stroke: #3f8f3f } .bad { fill: #f8d2cc; stroke: #b5473a }
.none { fill: #ffffff; stroke: #9aa5b1; stroke-dasharray: 4 3 } .line { stroke: #52606d; fill: none }
@media (prefers-color-scheme: dark) { .paper { fill: #f7f9fb } }
</style>"""


def svg(name: str, width: int, height: int, title: str, parts: list[str]) -> None:
    """Write one picture on a light background."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
    paper = f'<rect class="paper" width="{width}" height="{height}" rx="6" fill="#ffffff"/>'
    (FOLDER / f"{name}.svg").write_text("\n".join([head, STYLE, paper, *parts, "</svg>", ""]))


def box(x: float, y: float, width: float, height: float, kind: str = "box") -> str:
    """A rectangle."""
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="4"/>'


def text(x: float, y: float, words: str, *, small: bool = False, middle: bool = False) -> str:
    """A line of text."""
    kind = ' class="small"' if small else ""
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x}" y="{y}"{kind}{anchor}>{words}</text>'


def arrow(x: float, y: float, end: float) -> str:
    """An arrow to the right."""
    return f'<path class="line" d="M{x} {y} H{end} m-6 -4 l6 4 l-6 4"/>'


def questions() -> None:
    """The five questions, in the order in which data flows."""
    steps = [
        ("Query", "anchors (B,)", ""),
        ("Pool", "draws candidates", "where"),
        ("Sampler", "chooses k of them", "which, how many"),
        ("Detector", "0 to 1 for each", "which to distrust"),
        ("Policy", "drops or reweights", ""),
        ("Loss", "(B,)", ""),
        ("Report", "hardness, false", "what they did"),
    ]
    width, gap, parts = 122, 22, []
    for place, (name, what, question) in enumerate(steps):
        x = 12 + place * (width + gap)
        parts += [box(x, 40, width, 56), text(x + width / 2, 64, name, middle=True)]
        parts += [text(x + width / 2, 84, what, small=True, middle=True)]
        parts += [text(x + width / 2, 26, question, middle=True)] if question else []
        parts += [arrow(x + width, 68, x + width + gap)] if place + 1 < len(steps) else []
    svg(
        "questions", 12 + len(steps) * (width + gap), 112, "Query, pool, sampler, detector, policy, loss, report", parts
    )


def shapes() -> None:
    """Three rows of four slots: ids, the mask, and what was dropped."""
    rows = [
        ("user 7", [("31", "good"), ("8", "good"), ("90", "good"), ("14", "good")], ""),
        ("user 2", [("5", "good"), ("66", "bad"), ("12", "good"), ("40", "good")], "66 is suspected: relation 2"),
        ("user 9", [("3", "good"), ("77", "good"), ("-1", "none"), ("-1", "none")], "only 2 items are left"),
    ]
    parts = [text(12, 24, "ids (B, K)"), text(400, 24, "mask (B, K)")]
    for line, (anchor, slots, why) in enumerate(rows):
        y = 40 + 44 * line
        parts.append(text(12, y + 24, anchor))
        for place, (shown, kind) in enumerate(slots):
            x = 90 + 66 * place
            parts += [box(x, y, 58, 36, kind), text(x + 29, y + 23, shown, middle=True)]
            parts += [box(400 + 34 * place, y + 6, 26, 24, "good" if kind == "good" else "none")]
        parts.append(text(550, y + 24, why, small=True))
    svg("shapes", 760, 176, "Three rows of four slots, with the mask beside them", parts)


def bands() -> None:
    """The scores of candidates: easy, hard, and likely false."""
    parts = [
        '<path class="line" d="M20 110 C 80 100 120 30 190 30 C 260 30 300 96 520 108"/>',
        '<path d="M330 110 C 400 108 420 70 470 70 C 520 70 540 106 600 110 Z" class="bad" fill-opacity="0.7"/>',
        '<path class="line" d="M12 110 H640 m-6 -4 l6 4 l-6 4"/>',
        '<path class="line" stroke-dasharray="4 3" d="M300 20 V118 M450 20 V118"/>',
        text(150, 134, "easy: no gradient", small=True, middle=True),
        text(375, 134, "hard: useful", small=True, middle=True),
        text(545, 134, "likely unlabelled positives", small=True, middle=True),
        text(196, 22, "true negatives", middle=True),
        text(530, 56, "false negatives", middle=True),
        text(640, 104, "score", small=True),
    ]
    svg("bands", 690, 146, "True negatives score low, false negatives score high, and the two overlap", parts)


if __name__ == "__main__":
    for picture in (questions, shapes, bands):
        picture()
