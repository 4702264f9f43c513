"""Writes the sources of the site from the specifications: ``PYTHONPATH=tools python -m reference FOLDER``.

Nothing about an operator is written by hand: its page has what its specification, its functions and the engines say,
and examples that are run while the page is written. `docs/site` has the rest: Sphinx's configuration, the guides,
styles and scripts. ``make docs`` does all of it.
"""
