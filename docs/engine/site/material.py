"""What Material's script does to a page, and what it should.

Its minified text is changed where it makes a browser lay out or style all of a page, or
undoes what a reader did. assets/js/after-paint.js loads it.
"""

import logging
import re

log = logging.getLogger("mkdocs.hooks.material")

_MENDED = {
    # It takes each alternate form of a page for another language, and looks for a
    # sitemap beside it.
    r"link\[rel=alternate\]": "link[rel=alternate][hreflang]",
    # Tables are in their boxes already: see `stacked`.
    r'"table:not\(\[class\]\)"': '":not(.md-typeset__table)>table:not([class])"',
    # Each change of this makes a browser style all of the page again. The page says it
    # itself, before it is painted: see the theme's palette.html.
    r'\{name:"color-scheme"\}': "{}",
    # It shuts drawer and search where an address names a place: not when it comes, for
    # a reader may have opened them before.
    r'\w+\(\w+,\w+\)\.pipe\(\w+\(125\)\)\.subscribe\((\(\)=>\{\w+\("drawer",.*?\})\)': (
        r'addEventListener("hashchange",()=>setTimeout(\1,125))'
    ),
    # It asks where each heading stands, and a browser lays out shut folds to answer.
    # A heading in a fold stands where the fold does.
    r"let (\w+)=(\w+)\.offsetTop;for\(;!\1": (
        r"for(let x;x=\2.parentElement.closest('details:not([open])');)\2=x;\g<0>"
    ),
    # It mounts all parts of a page in one go: each gets a task, and keys between them.
    r'(=\w+\(\(\)=>)(\w+)\((?=\.\.\.\w+\("announce"\))': (
        r"\1((...parts)=>\2(...parts.map(part=>new part.constructor(to=>{"
        r"setTimeout(()=>to.closed||to.add(part.subscribe(to)))}))))("
    ),
    # It prepares the explanation of each title in a page, a hundred on some: here when
    # one is pointed at, or has the focus.
    (
        r'(\[title\]:not\(\[data-preview\]\)".*?\.map\((\w+)=>)'
        r"(\w+\(\2,\{viewport\$:\w+\}\))"
    ): (
        r"\1(told=>new told.constructor(to=>{"
        r"let on=['mouseenter','focusin'],tell=()=>{"
        r"for(let x of on)\2.removeEventListener(x,tell);to.add(told.subscribe(to))};"
        r"if(\2.matches(':hover,:focus'))tell();"
        r"else for(let x of on)\2.addEventListener(x,tell)}))(\3)"
    ),
}


def mended(code: str, name: str) -> str:
    """Return Material's script as it should be; warn where it is not what it was."""
    for given, wanted in _MENDED.items():
        code, found = re.subn(given, wanted, code)
        if not found:
            log.warning("%s does not say %s any more", name, given)
    return code
