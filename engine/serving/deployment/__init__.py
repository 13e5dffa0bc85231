"""Deployments: which replicas serve a load within its limits, for the least money.

``load`` says what is asked and ``found`` what is found. ``search`` lists every way that it tries; ``forms``
judges all of them in closed form (on a page by the ``loops``), and ``runs`` simulates the cheapest.
``commands`` writes what starts one, ``frontier`` sets speed against cost, ``page`` is what the page asks, and
``choice`` is a smaller search in loops alone, for a figure.
"""

from engine.serving.deployment.found import Deployment, Deployments
from engine.serving.deployment.load import Limits, Load
from engine.serving.deployment.search import deploy

__all__ = ["Deployment", "Deployments", "Limits", "Load", "deploy"]
