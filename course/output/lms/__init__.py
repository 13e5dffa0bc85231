"""Packages of the course for a learning system, made by ``make lms`` from the built site: SCORM 2004 (4th
edition), SCORM 1.2 and cmi5. Each lesson is a unit of its own, which reports predictions and exercises only
to the system that launched it; no server of ours is involved.

    build/system-ml-scorm2004.zip      package.py
    build/system-ml-scorm12.zip
    build/system-ml-cmi5.zip           manifests.py writes their manifests: imsmanifest.xml, cmi5.xml
    report/                            the scripts that are added to the pages in a package, and only there
"""
