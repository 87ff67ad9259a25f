"""What a library shows of a program, written down compactly: after each line, only what changed."""

from .known import KNOWN
from .machine import Machine, difference


def record(name, lines, library, each=True):
    machine, seen, steps = Machine(library), {}, []
    for i, line in enumerate(lines):
        error = machine.run(line)
        before, seen = seen, machine.see() if each or i == len(lines) - 1 else seen
        steps.append([error, changes(before, seen)])
    return {"name": name, "lines": lines, "each": each, "steps": steps}


def changes(before, after):
    """The entries of `after` that are not in `before`; None for those that are gone."""
    changed = {}
    for key in [*after, *(k for k in before if k not in after)]:
        old, new = before.get(key), after.get(key)
        if repr(old) != repr(new):
            both = isinstance(old, dict) and isinstance(new, dict)
            changed[key] = changes(old, new) if both else new
    return changed


def apply(seen, changed):
    """Undoes `changes`."""
    seen = dict(seen)
    for key, new in changed.items():
        both = isinstance(seen.get(key), dict) and isinstance(new, dict)
        seen[key] = apply(seen[key], new) if both else new
    return seen


def replay(recorded, library):
    """Runs a recorded program again; says what differs, or None."""
    machine, expected = Machine(library), {}
    for i, (line, (error, changed)) in enumerate(zip(recorded["lines"], recorded["steps"])):
        raised = machine.run(line)
        expected = apply(expected, changed)
        found = difference({"error": error}, {"error": raised})
        if not found and (recorded["each"] or i == len(recorded["lines"]) - 1):
            found = difference(without_gone(expected), without_gone(machine.see()))
        if found and recorded["name"] in KNOWN:
            return None
        if found:
            return "\n".join([*recorded["lines"][: i + 1], f"# {found}"])
    return None


def without_gone(seen):
    """A tensor that was deleted is recorded as None, as is a gradient that is not there."""
    return {name: facts for name, facts in seen.items() if facts is not None}
