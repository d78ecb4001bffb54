"""The engine runs the Python of the site's pages: for tests, figures and notebooks.

Reading a page
    project        where the pages are, and what mkdocs.yml says
    lines          lines that know the file and line they were read from; snippets
    page           a page, its front matter, fences and blocks
    fences         fenced code of any language
    blocks         Python blocks, with the mark and the output that belong to each

Checking it
    rendered       what the site makes of the page
    completeness   is every block that readers see one that is run?
    sections       the parts of a chapter
    places         the links that figures go to
    checks         all of it for one page
    markers        snippet markers in the package
    project_rules  what holds over all pages

Running it
    environment    what a page finds when it starts
    compiling      code whose every line keeps its true file and number
    running        blocks in order, in one `__main__`
    failures       what went wrong, and where
    comparing      output shown against output printed
    figures        drawings as SVG, light and dark

Making files from it
    generate, cache, processes, worker  the pages that changed, each in a process
    notebooks, flatten, markup, bundle  a notebook of each chapter
    standalone, merging, modules        one file with what a chapter embeds
    alone                               runs both where the package is not
    outputs                             writes outputs into the pages

Its three users
    plugin, items            pytest: pages as tests
    hooks, links, lab_pages  MkDocs: the site
    __main__                 the command line: `python docs/engine --help`
"""
