"""The engine runs the Python of the site's pages: for tests, figures and notebooks.

project       where the pages are, and what mkdocs.yml says
definitions   what `--8<-- "file.py:Class.method"` stands for, by the syntax tree
blocks        lines that know where they are from, fenced code, Python blocks
reading       a page as it is written, and as the site shows it
checking      what can be wrong with a page, or with all, before any is run
compiling     code whose every line keeps its file and number; what failed, and where
running       blocks in order, in one `__main__`, which starts the same each time
outputs       what a page shows against what its block printed
figures       drawings as SVG, light and dark, and the places that they go to
notebooks     a notebook of each chapter, which holds its outputs and runs alone
modules       a module of the package as statements that can be taken out
copying       which statements a copy takes, and what stands in for fast code
standalone    one file with the code of a chapter, which needs nothing of the package
alone         runs notebooks and files where the package is not
cache         what the blocks of a page left behind, while that still holds
working       pages in processes of their own, and all that is made of them
making        figures, notebooks, downloads and outputs, of the pages that changed
lists         README's table of chapters, the home page's, "The order"; a hook
chapter       a new chapter, with its place in the navigation and the link to it
looking       who shows a piece of code; one page served, or taken pictures of
results       what runs of training reached; `results_page` is the page about it
plugin        pytest: pages as tests
hooks         MkDocs: the site; `api` is about the API pages
__main__      the command line: `python -m engine --help`
"""
