"""The profiler: what it names, how it nests and counts, its table and its trace, and that it keeps nothing."""

import gc
import gzip
import importlib
import json
import threading
import weakref
import xml.dom.minidom

import pytest

from library import IS_GRADIRON, NAME, T, devices, python_ok

P = importlib.import_module(f"{NAME}.profiler")
AP = importlib.import_module(f"{NAME}.autograd.profiler")
ours = pytest.mark.skipif(not IS_GRADIRON, reason="what is ours alone")

# PyTorch splits its operators further; what it calls inside of them is not asked for.
TURN = "autograd::engine::evaluate_function: "


def step(size=8):
    x = T.ones(size, size, requires_grad=True)
    y = (x @ x).relu() * 2
    y.sum().backward()


def recorded(work=step, **options):
    with P.profile(**options) as p:
        work()
    return p


def by_name(events):
    found = {}
    for event in events:
        found.setdefault(event.key, []).append(event)
    return found


def test_names_of_operators_nodes_and_leaves():
    keys = {e.key for e in recorded().events()}
    assert {"aten::matmul", "aten::relu", "aten::mul", "aten::sum"} <= keys
    nodes = {"SumBackward0", "MulBackward0", "ReluBackward0", "MmBackward0", "torch::autograd::AccumulateGrad"}
    assert nodes <= keys
    assert {TURN + node for node in nodes} <= keys


@pytest.mark.parametrize(
    "work, name",
    [
        (lambda x: x + 1, "aten::add"),
        (lambda x: 1 - x, "aten::rsub"),
        (lambda x: T.add(x, x), "aten::add"),
        (lambda x: x.add_(1), "aten::add_"),
        (lambda x: x.__imul__(2), "aten::mul_"),
        (lambda x: -x, "aten::neg"),
        (lambda x: x == x, "aten::eq"),
        (lambda x: x**2, "aten::pow"),
        (lambda x: x[0], "aten::select"),
        (lambda x: x[1:], "aten::slice"),
        (lambda x: x[T.tensor([0])], "aten::index"),
        (lambda x: x.__setitem__(T.tensor([0]), T.zeros(1, 3)), "aten::index_put_"),
        (lambda x: x.__setitem__(slice(0, 1), T.zeros(1, 3)), "aten::copy_"),
        (lambda x: x.copy_(x + 1), "aten::copy_"),
        (lambda x: x.to(T.float64), "aten::to"),
        (lambda x: x.detach(), "aten::detach"),
        (lambda x: T.cat([x, x]), "aten::cat"),
        (lambda x: T.zeros(2), "aten::zeros"),
        (lambda x: T.nn.functional.softplus(x), "aten::softplus"),
    ],
)
def test_name_of_a_call(work, name):
    x = T.ones(2, 3)
    assert name in by_name(recorded(lambda: work(x)).events())


def test_aliases_go_by_the_operator_s_name():
    x = T.ones(2)
    assert "aten::abs" in by_name(recorded(lambda: T.absolute(x)).events())


def test_counts_and_sums():
    x = T.ones(4)

    def work():
        for _ in range(5):
            x * 2

    p = recorded(work)
    (mul,) = [a for a in p.key_averages() if a.key == "aten::mul"]
    assert mul.count == 5
    calls = by_name(p.events())["aten::mul"]
    assert mul.cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in calls))
    assert mul.self_cpu_time_total == pytest.approx(sum(e.self_cpu_time_total for e in calls))
    assert mul.cpu_time == pytest.approx(mul.cpu_time_total / 5)
    assert p.key_averages().self_cpu_time_total == pytest.approx(p.events().self_cpu_time_total)


def test_events_nest_by_time():
    def work():
        with P.record_function("outer"):
            with P.record_function("inner"):
                T.ones(3) + 1
        step()

    events = recorded(work).events()
    names = by_name(events)
    (outer,), (inner,) = names["outer"], names["inner"]
    assert inner.cpu_parent is outer and inner in outer.cpu_children
    assert names["aten::add"][0].cpu_parent is inner
    (turn,), (node,) = names[TURN + "MulBackward0"], names["MulBackward0"]
    assert node.cpu_parent is turn
    for event in events:
        assert event.time_range.start <= event.time_range.end
        assert event.cpu_time_total == pytest.approx(event.time_range.elapsed_us())
        for child in event.cpu_children:
            assert event.time_range.start <= child.time_range.start
            assert child.time_range.end <= event.time_range.end + 1e-3
        inside = sum(child.cpu_time_total for child in event.cpu_children)
        assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - inside, abs=1e-3)


def test_record_function_as_a_decorator():
    @P.record_function("deco")
    def plus(a):
        return a + 1

    found = by_name(recorded(lambda: (plus(T.ones(2)), plus(T.ones(2)))).events())["deco"]
    assert len(found) == 2
    assert all(e.cpu_parent is None and e.cpu_children[0].key == "aten::add" for e in found)
    assert plus.__name__ == "plus"


@ours
def test_a_decorated_function_may_call_itself():
    @P.record_function("deco")
    def plus(a, depth):
        return plus(a + 1, depth - 1) if depth else a + 1

    found = by_name(recorded(lambda: plus(T.ones(2), 2)).events())["deco"]
    assert len(found) == 3
    assert [e.cpu_parent for e in found] == [None, *found[:2]]


@ours
def test_a_call_inside_of_nothing_but_its_own_name_counts_once():
    @P.record_function("deco")
    def plus(a, depth):
        return plus(a, depth - 1) if depth else a + 1

    (found,) = by_name(recorded(lambda: plus(T.ones(2), 3)).events())["deco"]
    assert [c.key for c in found.cpu_children] == ["aten::add"]
    assert found.cpu_children[0].cpu_parent is found


def test_record_function_survives_an_exception():
    def work():
        with pytest.raises(ValueError), P.record_function("broken"):
            raise ValueError
        T.ones(2) + 1

    names = by_name(recorded(work).events())
    assert names["aten::add"][0].cpu_parent is None
    assert len(names["broken"]) == 1


def test_nothing_is_recorded_outside():
    T.ones(2) + 1
    mark = P.record_function("before")
    mark.__enter__()
    p = recorded(lambda: T.ones(2) * 2)
    mark.__exit__(None, None, None)
    T.ones(2) - 1
    keys = {e.key for e in p.events()}
    assert "aten::mul" in keys
    assert not keys & {"aten::sub", "before"}


def test_the_node_and_its_call_share_a_number():
    x = T.ones(2, requires_grad=True)
    names = by_name(recorded(lambda: (x * 2).sum().backward()).events())
    made = [e.sequence_nr for e in names["aten::mul"]]
    (ran,) = [e.sequence_nr for e in names["MulBackward0"]]
    assert ran in made and ran >= 0
    quiet = by_name(recorded(lambda: T.ones(2) * 2).events())["aten::mul"]
    assert quiet[0].sequence_nr == -1 or not IS_GRADIRON


def test_custom_functions_have_their_names():
    class Twice(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = T.ones(2, requires_grad=True)
    names = by_name(recorded(lambda: Twice.apply(x).sum().backward()).events())
    (call,) = names["Twice"]
    assert any(e.cpu_parent is call for e in names["aten::mul"])
    (node,) = names["TwiceBackward"]
    assert node.cpu_parent.key == TURN + "TwiceBackward"
    assert any(e.cpu_parent is node for e in names["aten::mul"])


def test_autograd_grad_is_recorded_too():
    x = T.ones(2, requires_grad=True)

    def work():
        (g,) = T.autograd.grad((x * x).sum(), x, create_graph=True)
        g.sum().backward()

    assert len(by_name(recorded(work).events())["MulBackward0"]) >= 2


# --- options ---


def test_shapes():
    x, y = T.ones(2, 3), T.ones(3)
    p = recorded(lambda: (x * y, x * 2, T.matmul(x, y)), record_shapes=True)
    names = by_name(p.events())
    assert [e.input_shapes[:2] for e in names["aten::mul"]] == [[[2, 3], [3]], [[2, 3], []]]
    assert names["aten::matmul"][0].input_shapes == [[2, 3], [3]]
    averages = p.key_averages(group_by_input_shape=True)
    assert sum(a.key == "aten::mul" for a in averages) == 2
    assert sum(a.key == "aten::mul" for a in p.key_averages()) == 1
    assert "Input Shapes" in averages.table()


def test_an_operator_s_alpha_counts_as_a_parameter():
    x = T.ones(2)
    add = by_name(recorded(lambda: (x + x, T.add(x, x, alpha=2)), record_shapes=True).events())["aten::add"]
    assert [e.input_shapes for e in add] == [[[2], [2], []]] * 2


def test_no_shapes_unless_asked():
    assert all(not e.input_shapes for e in recorded().events())


def test_memory():
    kept = []

    def work():
        with P.record_function("keeps"):
            kept.append(T.ones(256) + 1)
        with P.record_function("drops"):
            T.ones(256) + 1
            kept.clear()

    p = recorded(work, profile_memory=True)
    names = by_name(p.events())
    add = names["aten::add"][0]
    assert add.cpu_memory_usage == 1024
    assert names["keeps"][0].cpu_memory_usage == 1024
    assert names["drops"][0].cpu_memory_usage == -1024
    outer = names["drops"][0]
    assert outer.self_cpu_memory_usage == outer.cpu_memory_usage - sum(c.cpu_memory_usage for c in outer.cpu_children)
    table = p.key_averages().table(sort_by="self_cpu_memory_usage")
    assert "CPU Mem" in table and "Self CPU Mem" in table and "1.00 KB" in table


@ours
def test_memory_given_back_outside_of_all_events():
    x = T.ones(1000)
    held = [x + 1]
    p = recorded(held.clear, profile_memory=True)
    assert sum(e.cpu_memory_usage for e in p.events() if e.key == "[memory]") == -4000


def test_no_memory_unless_asked():
    p = recorded()
    assert all(e.cpu_memory_usage == 0 for e in p.events())
    assert "CPU Mem" not in p.key_averages().table()


@ours
def test_stacks_name_this_file():
    def inside():
        return T.ones(2) * 2

    p = recorded(inside, with_stack=True)
    stack = by_name(p.events())["aten::mul"][0].stack
    assert "test_profiler.py(" in stack[0] and stack[0].endswith("inside")
    assert "recorded" in stack[1]
    averages = p.key_averages(group_by_stack_n=2)
    assert max(len(a.stack) for a in averages) == 2
    assert "Source Location" in averages.table()


@ours
def test_nodes_show_the_stack_of_their_call():
    def forward(x):
        return (x * 2).sum()

    names = by_name(recorded(lambda: forward(T.ones(2, requires_grad=True)).backward(), with_stack=True).events())
    (node,), (turn,) = names["MulBackward0"], names[TURN + "MulBackward0"]
    assert node.stack == turn.stack == names["aten::mul"][0].stack
    assert node.stack[0].endswith(": forward")


def test_stacks_are_written_for_flame_graphs(tmp_path):
    path = tmp_path / "stacks.txt"
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        recorded().export_stacks(str(path), "self_cpu_time_total")
    p = recorded(lambda: [step(64) for _ in range(3)], with_stack=True)
    if IS_GRADIRON:
        p.export_stacks(str(path), "self_cpu_time_total")
        lines = path.read_text().splitlines()
        assert any(";" in line and line.rsplit(" ", 1)[1].isdigit() for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        p.export_stacks(str(path), "nonsense")


@pytest.mark.parametrize("option", ["experimental_config", "execution_trace_observer"])
@ours
def test_what_is_missing_says_so(option):
    with pytest.raises(NotImplementedError, match=option):
        P.profile(**{option: object()})


def test_modules_may_be_asked_for():
    with P.profile(with_modules=True) as p:
        step()
    assert p.with_modules and "aten::relu" in {e.key for e in p.events()}
    with AP.profile(with_modules=True) as p:
        step()
    assert p.with_modules


A, B, C = T.ones(3, 4), T.ones(4, 5), T.ones(3, 5)
MANY = T.ones(2, 3, 4), T.ones(2, 4, 5)


@pytest.mark.parametrize(
    ("work", "count"),
    [
        (lambda: A @ B, 120),
        (lambda: T.mm(A, B), 120),
        (lambda: T.addmm(C, A, B), 120),
        (lambda: T.bmm(*MANY), 240),
        (lambda: T.matmul(*MANY), 240),
        (lambda: T.baddbmm(C, *MANY), 240),
        (lambda: T.nn.functional.linear(A, B.t()), 120),
        (lambda: A + A, 12),
        (lambda: A + 1, 12),
        (lambda: T.mul(A, 2), 12),
        (lambda: A - A, 0),
        (lambda: A.exp().sum(), 0),
        (lambda: A @ B[:, 0], 0),
    ],
)
def test_floating_point_operations(work, count):
    p = recorded(work, with_flops=True)
    assert sum(e.flops for e in p.events()) == count == p.key_averages().total_average().flops
    assert not any(e.flops for e in recorded(work, record_shapes=True).events())
    with AP.profile(with_flops=True) as p:
        work()
    assert sum(e.flops for e in p.function_events) == count


def test_floating_point_operations_in_a_table():
    def work():
        A @ B
        T.ones(100, 100) @ T.ones(100, 100)
        A.exp()

    lines = recorded(work, with_flops=True).key_averages().table().splitlines()
    assert lines[1].split()[-2:] == ["Total", "MFLOPs"]
    assert any(line.split()[-1] == "2.000" for line in lines[3:-1])
    exp = next(line for line in lines if "aten::exp" in line)
    assert exp.split()[-1] == "--"
    lines = recorded(lambda: A @ B, with_flops=True, record_shapes=True).key_averages().table().splitlines()
    assert lines[1].split()[-4:] == ["Input", "Shapes", "Total", "FLOPs"] or lines[1].split()[-2:] == ["Total", "FLOPs"]
    assert "FLOPs" not in recorded(lambda: A.exp(), with_flops=True).key_averages().table()


def test_a_trace_without_a_schedule():
    p = P.profile()
    with pytest.raises(AssertionError, match="Profiler must be initialized before starting trace"):
        p.start_trace()
    with pytest.raises(AssertionError, match="Profiler must be initialized before stopping trace"):
        p.stop_trace()
    p.prepare_trace()
    A.exp()
    p.start_trace()
    A.sin()
    p.stop_trace()
    keys = {e.key for e in p.events()}
    assert "aten::sin" in keys and "aten::exp" not in keys


def test_names_of_traces():
    names = iter(["first", "second"])
    p = P.profile(custom_trace_id_callback=lambda: next(names))
    assert p.get_trace_id() is None
    with p:
        assert p.get_trace_id() == "first"
    p.start()
    p.stop()
    assert p.get_trace_id() == "second"
    p.set_custom_trace_id_callback(lambda: "third")
    p.start()
    p.stop()
    assert p.get_trace_id() == "third"
    with P.profile() as p:
        pass
    assert len(p.get_trace_id()) == 32 and int(p.get_trace_id(), 16) >= 0


def test_metadata_before_the_start(tmp_path):
    p = P.profile()
    p.preset_metadata_json("about", '{"run": 7}')
    with p:
        A.exp()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text())["about"] == {"run": 7}


@pytest.mark.parametrize("name", ["cuda_time", "cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage"])
def test_older_names_warn(name):
    event = recorded().events()[0]
    with pytest.warns(FutureWarning, match=f"`{name}` is deprecated"):
        assert getattr(event, name) == 0


def test_activities():
    assert P.ProfilerActivity.CPU in P.supported_activities()
    recorded(activities=[P.ProfilerActivity.CPU])
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        P.profile(activities=[])
    with pytest.raises(TypeError, match="Expected ProfilerActivity"):
        P.profile(activities=[3])


# --- the table ---


@ours
def test_a_notebook_gets_a_table_that_does_not_wrap():
    with P.profile(record_shapes=True) as p:
        with P.record_function("a <long> name & more, which a text table would cut at fifty-five characters"):
            T.ones(2) + 1
        T.ones(3, 3) @ T.ones(3, 3)
    averages = p.key_averages(group_by_input_shape=True)
    box = xml.dom.minidom.parseString(averages._repr_html_()).documentElement
    assert "overflow-x: auto" in box.getAttribute("style")
    rows = [
        [cell.firstChild.data if cell.firstChild else "" for cell in row.childNodes] for row in box.getElementsByTagName("tr")
    ]
    assert rows[0][:3] == ["Name", "Self CPU %", "Self CPU"] and rows[0][-1] == "Input Shapes"
    assert {event.key for event in averages} == {row[0] for row in rows[1:]}
    shares = [float(row[1].rstrip("%")) for row in rows[1:]]
    assert shares == sorted(shares, reverse=True)
    empty = xml.dom.minidom.parseString(type(averages)()._repr_html_())
    assert empty.getElementsByTagName("td") == []


def test_table_layout():
    lines = recorded(lambda: T.ones(2) + 1).key_averages().table(row_limit=1).splitlines()
    titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
    assert [t.strip() for t in lines[1].split("  ") if t.strip()] == titles
    assert lines[0] == lines[2] == lines[4]
    assert set(lines[0]) == {"-", " "}
    assert len(lines[1]) == len(lines[0]) == len(lines[3])
    assert [len(rule) for rule in lines[0].split()][1:] == [12] * 6
    assert lines[5].startswith("Self CPU time total: ")
    assert lines[3].split()[0].startswith("aten::")


def test_table_sorts_and_limits():
    averages = recorded().key_averages()
    order = [row.split()[0] for row in averages.table(sort_by="count").splitlines()[3:-2]]
    counts = {a.key: a.count for a in averages}
    found = [counts[name] for name in order if name in counts]
    assert found == sorted(found, reverse=True)
    assert len(averages.table(row_limit=2).splitlines()) == 4 + 2 + 1
    assert len(averages.table(row_limit=-1).splitlines()) == 4 + len(averages) + 1
    with pytest.raises(AttributeError, match="nonsense"):
        averages.table(sort_by="nonsense")


@pytest.mark.parametrize(
    "by", ["cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage"]
)
def test_table_s_keys(by):
    averages = recorded(profile_memory=True).key_averages()
    values = sorted((getattr(a, by) for a in averages), reverse=True)
    first = next(a for a in averages if getattr(a, by) == values[0])
    assert first.key[:20] in averages.table(sort_by=by, row_limit=1)


def test_long_names_are_cut():
    x = T.ones(2)

    def work():
        with P.record_function("n" * 80):
            x + 1

    averages = recorded(work).key_averages()
    assert "n" * 52 + "..." in averages.table() and "n" * 53 not in averages.table()
    assert "nnnnnnnnn...  " in averages.table(max_name_column_width=12)


def test_headers():
    events = recorded().events()
    assert events.table(header="HELLO").splitlines()[1] == "HELLO"
    top = events.table(top_level_events_only=True)
    assert "This report only display top-level ops statistics" in top
    assert "\n" + "MulBackward0".rjust(55) not in top


def test_empty_table():
    assert AP.EventList([]).table() == ""


def test_total_average():
    events = recorded().events()
    total = events.total_average()
    assert total.key == "Total" and total.count == len(events)
    assert total.self_cpu_time_total == pytest.approx(events.self_cpu_time_total)


def test_repr_names_the_times():
    p = recorded()
    assert repr(p.events()[0]).startswith("<FunctionEvent id=")
    assert repr(p.key_averages()[0]).startswith("<FunctionEventAvg key=")


# --- the trace ---


def complete(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt") as file:
        trace = json.load(file)
    return trace, [e for e in trace["traceEvents"] if e["ph"] == "X"]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_chrome_trace(tmp_path, name):
    path = tmp_path / name

    def work():
        with P.record_function("mine"):
            step()

    p = recorded(work, record_shapes=True)
    p.export_chrome_trace(str(path))
    trace, spans = complete(path)
    names = {e["name"] for e in spans}
    assert {"mine", "aten::mul", "MulBackward0", TURN + "MulBackward0"} <= names
    for span in spans:
        assert {"ph", "name", "pid", "tid", "ts", "dur", "args"} <= set(span)
        assert span["dur"] >= 0
    (mine,) = [e for e in spans if e["name"] == "mine"]
    mul = min((e for e in spans if e["name"] == "aten::mul"), key=lambda e: e["ts"])
    assert mine["cat"] == "user_annotation" and mul["cat"] == "cpu_op"
    assert mine["tid"] == mul["tid"]
    assert mine["ts"] <= mul["ts"] and mul["ts"] + mul["dur"] <= mine["ts"] + mine["dur"] + 0.1
    assert mul["args"]["Input Dims"][0] == [8, 8]
    arrows = [e["ph"] for e in trace["traceEvents"] if e.get("cat") == "fwdbwd"]
    assert arrows.count("s") >= 1 and arrows.count("s") == arrows.count("f")
    assert trace["schemaVersion"] == 1


def test_spans_of_a_thread_never_cross(tmp_path):
    p = recorded(lambda: [step() for _ in range(10)])
    p.export_chrome_trace(str(tmp_path / "t.json"))
    _, spans = complete(tmp_path / "t.json")
    for tid in {e["tid"] for e in spans}:
        open_until = []
        for span in sorted((e for e in spans if e["tid"] == tid), key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= span["ts"] + 1e-4:
                open_until.pop()
            end = span["ts"] + span["dur"]
            assert not open_until or end <= open_until[-1] + 0.01
            open_until.append(end)


@ours
def test_metadata_goes_into_the_trace(tmp_path):
    with P.profile() as p:
        p.add_metadata("who", 'a "name"')
        p.add_metadata_json("numbers", "[1, 2]")
        T.ones(2) + 1
    p.export_chrome_trace(str(tmp_path / "t.json"))
    trace, _ = complete(tmp_path / "t.json")
    assert trace["who"] == 'a "name"' and trace["numbers"] == [1, 2]


def test_tensorboard_handler(tmp_path):
    recorded(on_trace_ready=P.tensorboard_trace_handler(str(tmp_path / "runs"), worker_name="w"))
    (path,) = (tmp_path / "runs").iterdir()
    assert path.name.startswith("w.") and path.name.endswith(".pt.trace.json")
    assert complete(path)[1]


# --- the old interface ---


def test_autograd_profiler():
    with AP.profile(record_shapes=True, profile_memory=True) as p:
        step()
    assert "aten::mul" in str(p) and "aten::mul" in p.table()
    assert p.self_cpu_time_total == pytest.approx(p.total_average().self_cpu_time_total)
    assert {"aten::mul", "MulBackward0"} <= {a.key for a in p.key_averages(group_by_input_shape=True)}
    assert len(p.function_events) > 5
    assert AP.record_function is P.record_function


def test_autograd_profiler_switched_off():
    with AP.profile(enabled=False) as p:
        T.ones(2) + 1
    assert p is None


def test_not_reentrant():
    p = AP.profile()
    with p:
        T.ones(2) + 1
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"), p:
        pass


def test_device_only_is_refused():
    with pytest.raises(AssertionError):
        AP.profile(use_cpu=False).__enter__()


@ours
def test_one_session_at_a_time():
    with AP.profile() as outer:
        with pytest.raises(RuntimeError, match="Profiler is already enabled"), AP.profile():
            pass
        T.ones(2) + 1
    assert "aten::add" in by_name(outer.function_events)


def test_an_exception_ends_the_session():
    with pytest.raises(ValueError), P.profile() as p:
        T.ones(2) + 1
        raise ValueError
    assert "aten::add" in by_name(p.events())
    recorded()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda p: p.key_averages(), "Profiler must be initialized before getting key averages"),
        (lambda p: p.events(), "Profiler must be initialized before accessing events"),
        (lambda p: p.stop(), "Profiler must be initialized before stopping trace"),
        (lambda p: p.export_chrome_trace("nowhere"), "Profiler must be initialized before exporting chrome trace"),
    ],
)
def test_before_it_ran(call, text):
    with pytest.raises(AssertionError, match=text):
        call(P.profile())


# --- schedules ---


def actions(count, **options):
    plan = P.schedule(**options)
    return [plan(i).name for i in range(count)]


def test_schedule():
    cycle = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
    assert actions(9, wait=1, warmup=1, active=2) == cycle * 2 + ["NONE"]
    assert actions(12, wait=1, warmup=1, active=2, repeat=2, skip_first=1) == ["NONE", *cycle, *cycle, *["NONE"] * 3]
    assert actions(6, wait=2, warmup=1, active=1, skip_first=1, skip_first_wait=1)[:4] == [
        "NONE",
        "WARMUP",
        "RECORD_AND_SAVE",
        "NONE",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"wait": -1, "warmup": 0, "active": 1},
        {"wait": 0, "warmup": -1, "active": 1},
        {"wait": 0, "warmup": 0, "active": 0},
        {"wait": 0, "warmup": 1, "active": 1, "repeat": -1},
        {"wait": 0, "warmup": 1, "active": 1, "skip_first": -1},
    ],
)
def test_bad_schedules(options):
    with pytest.raises(AssertionError, match="Invalid profiler schedule arguments"):
        P.schedule(**options)


def test_schedule_warns_and_checks_steps():
    with pytest.warns(UserWarning, match="won't be using warmup"):
        P.schedule(wait=0, warmup=0, active=1)
    with pytest.raises(AssertionError, match="Step must be non-negative"):
        P.schedule(wait=0, warmup=1, active=1)(-1)


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
def test_a_loop_in_steps():
    found = []

    def ready(p):
        found.append((p.step_num, {e.key: e.count for e in p.key_averages()}))

    plan = P.schedule(wait=1, warmup=1, active=2, repeat=2)
    with P.profile(schedule=plan, on_trace_ready=ready) as p:
        for i in range(9):
            T.ones(2) * i
            p.step()
    assert [number for number, _ in found] == [4, 8]
    assert all(keys["aten::mul"] == 2 and keys["ProfilerStep*"] == 2 for _, keys in found)


def test_events_of_all_cycles():
    with P.profile(schedule=P.schedule(wait=0, warmup=1, active=1, repeat=2), acc_events=True) as p:
        for _ in range(5):
            T.ones(2) * 2
            p.step()
    assert len(by_name(p.events())["aten::mul"]) == 2


def test_on_trace_ready_without_a_schedule():
    seen = []
    p = recorded(on_trace_ready=seen.append)
    assert seen == [p]
    p.step()


def test_start_and_stop():
    p = P.profile()
    p.start()
    T.ones(2) + 1
    p.stop()
    assert "aten::add" in by_name(p.events())


# --- threads, leaks, cost ---


@ours
def test_all_threads_are_recorded():
    def work():
        threads = [threading.Thread(target=step) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    events = recorded(work).events()
    assert len({e.thread for e in events if e.key == "MulBackward0"}) == 3
    for event in events:
        assert all(child.thread == event.thread for child in event.cpu_children)


@ours
def test_events_go_with_their_list():
    gc.collect()
    gc.disable()
    try:
        p = recorded()
        first = weakref.ref(p.events()[0])
        held = weakref.ref(p)
        del p
        assert first() is None and held() is None
    finally:
        gc.enable()


@ours
def test_a_dropped_profile_stops():
    p = P.profile()
    p.start()
    del p
    gc.collect()
    recorded()


@ours
def test_memory_stays_flat():
    out = python_ok(
        """
P = importlib.import_module("gradiron.profiler")
import resource
x = T.ones(8, requires_grad=True)
def round_():
    with P.profile(record_shapes=True, profile_memory=True, with_stack=True) as p:
        for _ in range(10):
            (x * 2).sum().backward()
    p.key_averages()
for _ in range(50):
    round_()
gc.collect()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(300):
    round_()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    )
    assert int(out) < 4096


@ours
def test_the_profiler_is_loaded_when_it_is_asked_for():
    out = python_ok('print([m for m in sys.modules if "profil" in m], T.profiler.profile.__name__)')
    assert out.split("]")[0] == "["


@ours
@pytest.mark.skipif("cuda" not in devices(), reason="needs a GPU, or Mesa's software one")
def test_memory_of_the_gpu_is_counted_apart():
    x = T.ones(256, device="cuda")
    kept = []
    p = recorded(lambda: kept.append(x + 1), profile_memory=True)
    (add,) = by_name(p.events())["aten::add"]
    assert (add.cpu_memory_usage, add.device_memory_usage) == (0, 1024)
    assert "CUDA Mem" in p.key_averages().table()
    gone = recorded(kept.clear, profile_memory=True)
    assert sum(e.device_memory_usage for e in gone.events()) == -1024


@ours
@pytest.mark.skipif("cuda" not in devices(), reason="needs a GPU, or Mesa's software one")
def test_asking_for_the_gpu_s_time_says_what_is_measured():
    with pytest.warns(UserWarning, match="host's time"):
        P.profile(activities=[P.ProfilerActivity.CPU, P.ProfilerActivity.CUDA])
