"""A report that is looked at: one HTML file about the decisions of a chain, for an auditor.

:mod:`~bijotel.report.assets` holds what both pages share that are made here, this report and
``tools/verify.html``: the assets, and a policy that lets a page run nothing but its own script.
"""
