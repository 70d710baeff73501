"""Makes the app's icons from the page's icon. Needs ImageMagick; run it after a change of icon.svg."""

import pathlib
import struct
import subprocess

HERE = pathlib.Path(__file__).parent
SOURCE = HERE / "../../public/icon.svg"


def png(name: str, size: int) -> pathlib.Path:
    target = HERE / name
    subprocess.run(
        ["convert", "-background", "none", "-density", "2304", SOURCE, "-resize", f"{size}x{size}",
         "-strip", f"PNG32:{target}"],
        check=True,
    )
    return target


def icns(parts: dict[bytes, pathlib.Path]) -> None:
    """Apple's container: a head, then each PNG with its kind and length."""
    body = b"".join(
        kind + struct.pack(">I", len(data) + 8) + data
        for kind, data in ((kind, path.read_bytes()) for kind, path in parts.items())
    )
    (HERE / "icon.icns").write_bytes(b"icns" + struct.pack(">I", len(body) + 8) + body)


small = png("32x32.png", 32)
middle = png("128x128.png", 128)
large = png("128x128@2x.png", 256)
icns({b"ic07": middle, b"ic08": large})
subprocess.run(["convert", large, "-define", "icon:auto-resize=256,64,48,32,16", HERE / "icon.ico"], check=True)
