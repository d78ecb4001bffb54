"""The engine runs the Python of the site's pages: for tests, figures and notebooks.

project       where the pages are, and what mkdocs.yml says
definitions   what `--8<-- "file.py:Class.method"` stands for, by the syntax tree
pages/        a page as it is written and as the site shows it: `blocks` (lines with
              their origin, fenced code), `reading`, `checking` (what is wrong),
              `listing` (over all pages: the navigation, names), `numbers` (what on the
              page holds each), `exercises` (where they stand, and how they are
              answered), `chapter.md` (how one begins)
run/          `compiling` (code that keeps file and line), `running` (blocks in order,
              in one `__main__`), `outputs` (shown against printed), `figures` (their
              places), `style`, `fonts`, `touching` (labels that do), `cache` (what a
              page was made from), `answering` (solutions against known answers),
              `working` (pages in processes of their own)
copies/       `notebooks`, `exercises` (in them), `as_markdown`; one-file copies:
              `closure` (the definitions that some need), `standalone` (the file);
              `alone` runs notebooks and copies where the package is not
making        figures, notebooks, downloads and outputs, of the pages that changed
tables        what both of these are made with:
results       what runs of training reached, and the page about it
speed         time and memory beside those of others, and the page about it
release       what the changelog says, and whether a tag may be published
plugin        pytest: pages as tests
site/         MkDocs: `hooks` (what a build makes first, and tells the templates of
              docs/theme), `lists` (tables of chapters), `labs`, `api` (about the API
              pages), `search` (what the search looks through), `code` (folds and
              links), `captions` (figures, pictures, tables), `live`, `python`,
              `exercises` (fields to answer them), `paths` (through the book), `slides`
              (cut from chapters), `recall` (questions from earlier chapters),
              `formulas` (set by KaTeX), `bundles` (one stylesheet, one script),
              `policy` (what may run)
book/         the core chapters as EPUB and PDF, from the built site: `chapters` (which,
              and each as it stands there), `folds`, `code`, `links`, `figures`,
              `formulas` (MathML and pictures), `volume` (all of it), `cover`, `epub`,
              `pdf`
node          calls npm packages
browser       the Chromium of this machine
__main__      the command line: `python -m engine --help`
"""
