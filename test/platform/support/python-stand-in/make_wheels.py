"""Packs tiny wheels into a folder, so that pip has something to install without any index.

`langgraph_cli` holds a stand-in for the agent server; `tiny_greeting` is a dependency that an agent may have.
"""

import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent


def pack(folder: Path, name: str, version: str, files: dict[str, str], extra: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extra}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    contents[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in contents.items():
            wheel.writestr(path, text)


folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
server = {str(file.relative_to(HERE / "stand_in")): file.read_text() for file in (HERE / "stand_in").rglob("*.py")}
pack(folder, "langgraph_cli", "0.0.1", server, "Provides-Extra: inmem\n")
pack(folder, "tiny_greeting", "1.0.0", {"tiny_greeting.py": "def greet(name):\n    return f'hello, {name}'\n"})
