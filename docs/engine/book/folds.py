"""What is folded on the site: sections, tabs, and solutions at a chapter's end."""

from bs4 import BeautifulSoup, Tag

_SOLUTION = ("success", "answer", "run")  # of an exercise, or of a prediction
_SOUP = BeautifulSoup("", "html.parser")
_CODE_OF = "The code of this "  # picture, table, experiment


def new(name: str, text: str = "", **attributes: str) -> Tag:
    """Return an element of its own; `class_` is its class."""
    tag = _SOUP.new_tag(name)
    tag.attrs = {key.rstrip("_"): value for key, value in attributes.items()}
    if text:
        tag.string = text
    return tag


def line(text: str, address: str, *, shown: str = "") -> Tag:
    """Return a line that ends with an address."""
    tag = new("p", text, class_="online")
    tag.append(new("a", shown or address.partition("://")[2], href=address))
    return tag


def unfold(body: Tag, address: str) -> None:
    """Make plain sections of all folds and tabs."""
    _solutions(body)
    for fold in body("details"):
        summary = fold.find("summary", recursive=False)
        assert isinstance(summary, Tag)
        title = summary.get_text().strip()
        # Of code that only makes what is shown, a reader of a book gets the address.
        if title.startswith(_CODE_OF) and not fold.find("p"):
            place = f"{address}#{fold['id']}" if fold.get("id") else address
            said = line(f"{title}: ", place)
            said.attrs |= {"id": fold["id"]} if fold.get("id") else {}
            fold.replace_with(said)
            continue
        fold.name, summary.name = "section", "p"
        fold["class"] = " ".join(["fold", *fold.get_attribute_list("class")])
        summary["class"] = "fold-title"
    for tabs in body.select(".tabbed-set"):
        names = [x.get_text() for x in tabs.select(".tabbed-labels label")]
        blocks = tabs.select(".tabbed-block")
        for name, block in zip(names, blocks, strict=True):
            block["class"] = "tab"
            block.insert(0, new("p", name, class_="tab-title"))
            tabs.insert_before(block)
        tabs.decompose()


def _solutions(body: Tag) -> None:
    """Move the solutions of exercises to the end, with links both ways."""
    part = new("section", class_="solutions")
    part.append(new("h2", "Solutions", id="solutions"))
    for number, exercise in enumerate(body.select(".admonition.question"), 1):
        folded = [
            fold
            for fold in exercise.find_all("details", recursive=False)
            if {*fold.get_attribute_list("class")} & {*_SOLUTION}
        ]
        if not folded:
            continue
        here, there = f"asked-{number}", f"solved-{number}"
        asked = exercise.find(class_="admonition-title")
        assert isinstance(asked, Tag)
        exercise.attrs.setdefault("id", here)
        told = new("section", class_="solution", id=there)
        heading = new("h3")
        heading.append(new("a", asked.get_text(), href=f"#{exercise['id']}"))
        told.append(heading)
        options = new("ul")
        for fold in folded:
            _move(fold, told, options)
        if options.contents:
            exercise.append(options)
        leads = new("p", class_="online")
        leads.append(new("a", "Solution", href=f"#{there}"))
        exercise.append(leads)
        part.append(told)
    if part.find("h3"):
        body.append(part)


def _move(fold: Tag, told: Tag, options: Tag) -> None:
    """Put what is folded into the solution; what may be chosen stays in a list."""
    summary = fold.find("summary", recursive=False)
    assert isinstance(summary, Tag)
    if "answer" in fold.get_attribute_list("class"):
        choice = new("li")
        choice.extend(BeautifulSoup(summary.decode_contents(), "html.parser").contents)
        options.append(choice)
        summary.name, summary["class"] = "p", "choice"
    else:
        summary.decompose()
    fold.extract()
    fold.name, fold["class"] = "div", "told"
    told.append(fold)
