"""The Panel application behind the served pages: one session per open page, one model with a question and an
answer.

    panel serve site/live.py --plugins widgets.kit.server.plugin

The page asks with the values of a widget's controls; Python answers with everything the widget shows.
"""

from panel import state

from widgets.kit.server.session import Session

Session(state.curdoc)
