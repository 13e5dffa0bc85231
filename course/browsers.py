"""Where Chromium is on this machine, and how it is started, for the tests and for the PDF of the course."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Chromium without its own windows, tabs and profile: a page costs a quarter less processor time in it.
SHELL = "chromium-headless-shell"
HOW_TO_GET_ONE = (
    "Get one with `apt-get install chromium` or `playwright install chromium`, or name yours: "
    "CHROMIUM=/path/to/chrome."
)
# Chrome reloads the two pages of its address bar's list for each window, a second of processor time for
# something nobody sees. This list of features replaces Playwright's (chromiumSwitches.ts), so it repeats the
# features that Playwright turns off.
NOT_NEEDED = ["WebUIOmniboxPopup", "WebUIOmniboxAimPopup"]
OFF_BY_PLAYWRIGHT = [
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "TcpPortRandomizationWin",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--font-render-hinting=slight",  # as in the full browser; the shell would round letters' widths to pixels
    f"--disable-features={','.join(NOT_NEEDED + OFF_BY_PLAYWRIGHT)}",
    # requests to other hosts fail, as they would without a network
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


def find(playwrights_own: str, whole: bool = False) -> str:
    """The path of a Chromium, or a LookupError that says how to get one. ``whole`` asks for the full browser,
    as readers have it, instead of the headless shell."""
    named = os.environ.get("CHROMIUM")
    if named:
        found = shutil.which(named)
    else:
        names = NAMES if whole else (SHELL, *NAMES)
        found = next((path for name in names if (path := shutil.which(name))), None) or shutil.which(
            playwrights_own
        )
    if not found:
        raise LookupError(
            f"CHROMIUM={named} is not a program. {HOW_TO_GET_ONE}"
            if named
            else f"No Chromium was found. {HOW_TO_GET_ONE}"
        )
    return found
