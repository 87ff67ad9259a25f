"""All golden files come from one PyTorch, and from a script beside them."""

import golden_file


def test_golden_files_say_which_pytorch_made_them():
    names = [path.name for path in golden_file.HOME.glob("*.json*")]
    versions = {name: golden_file.load(name)["pytorch"] for name in (*names, golden_file.NAMES)}
    assert len(names) > 15 and len(set(versions.values())) == 1, versions
    made = {name: (golden_file.HOME / f"make_{name.partition('.')[0]}.py").exists() for name in names}
    assert all(made.values()), made
