"""Pack the built site into one file that is read from a folder, without a network.

python book/_ext/offline.py     _build/harmless-label-noise-VERSION.zip
"""

import zipfile
from pathlib import Path

import publish

ROOT = Path(__file__).resolve().parents[2]
# What only a server, or a later build, has a use for.
ONLINE = {"_images/social_previews", "notebooks/binder", "sitemap.xml", ".buildinfo", "objects.inv"}


def is_online(name):
    return any(name == part or name.startswith(f"{part}/") for part in ONLINE)


def pack(site, target):
    """Write the archive, all in one folder of its name, and return its path."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(site.rglob("*")):
            name = path.relative_to(site).as_posix()
            if path.is_file() and not is_online(name):
                archive.write(path, f"{target.stem}/{name}")
    return target


def main():
    name = f"harmless-label-noise-{publish.version(ROOT)}.zip"
    target = pack(ROOT / "_build" / "html", ROOT / "_build" / name)
    size = target.stat().st_size / 1e6
    print(f"The offline edition: {target} ({size:.0f} MB; unpack it, open index.html)")


if __name__ == "__main__":
    main()
