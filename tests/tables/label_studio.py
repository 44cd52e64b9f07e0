"""Votes of three annotators on a hundred messages as Label Studio's own converter exports them: label_studio.csv and .json.

It needs label-studio-sdk (2.1.2 wrote the files here): python label_studio.py FOLDER
"""

import json
import random
import shutil
import sys
import tempfile
from math import exp
from pathlib import Path

from label_studio_sdk.converter import Converter

CONFIG = """
<View>
  <Text name="text" value="$text"/>
  <Choices name="choice" toName="text"><Choice value="spam"/><Choice value="fine"/></Choices>
</View>
"""
TIME = "2026-01-05T09:00:00Z"


def tasks() -> list[dict]:
    """A project: messages with two features, of which the log-odds of a vote for spam are 1.5 links - 1.5 + 0.8 capitals."""
    rng = random.Random(1)
    found = []
    for k in range(100):
        links, capitals = rng.randrange(4), round(rng.gauss(0, 1), 2)
        p = 1 / (1 + exp(1.5 - 1.5 * links - 0.8 * capitals))
        p = rng.betavariate(8 * p, 8 * (1 - p))
        annotations = [
            {
                "id": 7000 + 3 * k + a,
                "completed_by": {"id": a + 1, "email": f"{name}@example.org"},
                "created_at": TIME,
                "updated_at": TIME,
                "lead_time": 4.2,
                "was_cancelled": False,
                "result": [
                    {
                        "id": "r",
                        "type": "choices",
                        "from_name": "choice",
                        "to_name": "text",
                        "value": {"choices": ["spam" if rng.random() < p else "fine"]},
                    }
                ],
            }
            for a, name in enumerate(("ann", "bob", "cem"))
        ]
        data = {"text": f'Message {k}, "as it came"', "links": links, "capitals": capitals}
        found.append({"id": 1000 + k, "data": data, "annotations": annotations, "predictions": []})
    return found


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        export = Path(place, "export.json")
        export.write_text(json.dumps(tasks()))
        converter = Converter(CONFIG, project_dir=None)
        converter.convert_to_csv(str(export), str(Path(place, "csv")), is_dir=False, sep=",", header=True)
        converter.convert_to_json_min(str(export), str(Path(place, "min")), is_dir=False)
        shutil.copy(Path(place, "csv", "result.csv"), folder / "label_studio.csv")
        shutil.copy(Path(place, "min", "result.json"), folder / "label_studio.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
