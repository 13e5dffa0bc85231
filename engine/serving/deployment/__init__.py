"""Deployments: which replicas serve a load within its limits, for the least money.

``load`` defines the question and ``found`` the answer. ``search`` lists all deployments that it tries;
``forms`` judges them in closed form (with ``arrays``, on a page with ``loops``), and ``runs`` simulates the
cheapest. ``frontier`` compares speed with cost, and ``choice`` is a smaller search in plain loops, for a
figure. How a deployment is started is said by ``engine.frameworks``.
"""

from engine.serving.deployment.finder import deploy
from engine.serving.deployment.found import Deployment, Deployments
from engine.serving.deployment.load import Limits, Load

__all__ = ["Deployment", "Deployments", "Limits", "Load", "deploy"]
