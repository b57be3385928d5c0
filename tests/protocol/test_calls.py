"""Functions and arguments as bytes; the places of dependencies."""

from __future__ import annotations

import functools
import operator
import pickle
import subprocess
import sys
import textwrap

import pytest

from gnomon.runtime.messages import ByReference
from gnomon.runtime.protocol import (
    Bundle,
    BundleError,
    Ref,
    dumps_bundle,
    dumps_call,
    dumps_code,
    dumps_index,
    loads_call,
    loads_code,
    loads_index,
    substitute,
)


def run_python(script: str) -> str:
    """Run a script as a main program; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestCode:
    @pytest.mark.parametrize("func", [operator.add, len, str.upper, functools.partial(max, 3), dict])
    def test_importable_callables_are_plain_pickles(self, func):
        blob = dumps_code(func)
        assert blob == pickle.dumps(func, 5)
        assert isinstance(loads_code(blob), functools.partial) or loads_code(blob) is func

    def test_lambdas_and_closures_travel_by_value(self):
        offset = 10
        assert loads_code(dumps_code(lambda x: x + offset))(5) == 15

    def test_by_reference(self):
        func = object()
        assert loads_code(ByReference(func)) is func

    def test_cloudpickle_is_imported_only_when_needed(self):
        out = run_python(
            """
            import sys, operator
            from gnomon.runtime.protocol import dumps_code, dumps_call, encode_value, encode_error
            dumps_code(operator.add), dumps_call((1,), {}), encode_value([1]), encode_error(ValueError())
            print(any(m in sys.modules for m in ("cloudpickle", "numpy", "tblib", "pandas", "dask")))
            dumps_code(lambda: 1)
            print("cloudpickle" in sys.modules)
            """
        )
        assert out.split() == ["False", "True"]

    def test_what_lives_in_main_travels_by_value(self, tmp_path):
        script = tmp_path / "program.py"
        script.write_text(
            textwrap.dedent(
                """
                import sys
                from gnomon.runtime.protocol import dumps_call, dumps_code, encode_error, encode_value
                class Point:
                    def __init__(self, x): self.x = x
                class MainError(Exception): pass
                def func(p, k=1): return p.x + k
                with open(sys.argv[1], "wb") as file:
                    import pickle
                    try: raise MainError("from main")
                    except MainError as exc: record = encode_error(exc)
                    pickle.dump([dumps_code(func), dumps_call((Point(41),), {"k": 1}),
                                 [bytes(f) for f in encode_value(Point(7)).frames], tuple(record)], file)
                """
            )
        )
        subprocess.run([sys.executable, str(script), str(tmp_path / "out")], check=True, timeout=60)
        code, call, frames, record = pickle.loads((tmp_path / "out").read_bytes())
        args, kwargs = loads_call(call)
        assert loads_code(code)(*args, **kwargs) == 42
        from gnomon.runtime.messages import ErrorRecord
        from gnomon.runtime.protocol import decode_error, decode_value

        assert decode_value(frames).x == 7
        error = decode_error(ErrorRecord._make(record))
        assert type(error).__name__ == "MainError"
        assert error.args == ("from main",)

    def test_modules_registered_by_value_are_pickled_by_value(self, tmp_path, monkeypatch):
        out = run_python(
            f"""
            import sys, cloudpickle, pathlib
            folder = pathlib.Path({str(tmp_path)!r}); (folder / "usermod.py").write_text("def f(): return 5")
            sys.path.insert(0, str(folder))
            import usermod
            from gnomon.runtime.protocol import dumps_code, dumps_call, loads_code
            before = dumps_code(usermod.f)
            cloudpickle.register_pickle_by_value(usermod)
            after, call = dumps_code(usermod.f), dumps_call((usermod.f,), {{}})
            del sys.modules["usermod"]; sys.path.pop(0)
            print(loads_code(after)(), len(before) < 100 < len(after), len(call) > 100)
            """
        )
        assert out.split() == ["5", "True", "True"]

    def test_what_nothing_can_pickle_raises(self):
        import threading

        with pytest.raises(TypeError, match="pickle"):
            dumps_code(functools.partial(print, threading.Lock()))


class TestCall:
    def test_no_arguments_are_no_bytes(self):
        assert dumps_call((), {}) == b""
        assert loads_call(b"") == ((), {})

    @pytest.mark.parametrize(
        ("args", "kwargs"),
        [((1,), {}), ((), {"a": 1}), (([Ref(0), {"x": Ref(1)}],), {"k": (Ref(2),)}), ((b"x" * 100_000,), {})],
    )
    def test_round_trip(self, args, kwargs):
        assert loads_call(dumps_call(args, kwargs)) == (args, kwargs)

    def test_closures_in_arguments(self):
        (func,), _ = loads_call(dumps_call((lambda: 3,), {}))
        assert func() == 3

    def test_by_reference(self):
        call = ((object(),), {})
        assert loads_call(ByReference(call)) is call

    def test_unpicklable_arguments_raise(self):
        import threading

        with pytest.raises(TypeError, match="lock"):
            dumps_call((threading.Lock(),), {})


class TestSubstitute:
    def test_at_any_depth_of_exact_containers(self):
        args = (Ref(0), [Ref(1), 5], {"a": (Ref(0), {Ref(2)}), Ref(3): 1}, frozenset({Ref(2)}))
        kwargs = {"x": Ref(1), "y": [[[Ref(0)]]], "z": 3}
        values = ["v0", "v1", "v2", "v3"]
        new_args, new_kwargs = substitute(args, kwargs, values)
        assert new_args == ("v0", ["v1", 5], {"a": ("v0", {"v2"}), "v3": 1}, frozenset({"v2"}))
        assert new_kwargs == {"x": "v1", "y": [[["v0"]]], "z": 3}

    def test_nothing_is_changed_in_place_and_nothing_copied_needlessly(self):
        plain, with_ref = [1, 2, [3]], [Ref(0)]
        (same, new), _ = substitute((plain, with_ref), {}, [None])
        assert same is plain
        assert new == [None]
        assert with_ref == [Ref(0)]

    def test_subclasses_are_left_alone(self):
        class MyList(list):
            pass

        special = MyList([Ref(0)])
        (same,), _ = substitute((special,), {}, [1])
        assert same is special

    def test_values_are_not_looked_into(self):
        (new,), _ = substitute((Ref(0),), {}, [[Ref(0)]])
        assert new == [Ref(0)]


class Entry:
    """A graph task of a test."""

    def __init__(self, func, shared):
        self.func = func
        self.shared = shared

    def run(self, values):
        return self.func(*values)


class TestBundle:
    def test_round_trip_with_shared_memo(self):
        shared = list(range(1000))
        entries = [Entry(operator.add, shared) for _ in range(50)]
        blob = dumps_bundle(entries, list(range(50)))
        bundle = loads_code(blob)
        assert type(bundle) is Bundle
        assert len(bundle) == 50
        assert bundle[3].run([1, 2]) == 3
        assert bundle[0].shared is bundle[49].shared
        assert len(blob) < 2 * len(dumps_code(entries[0]))

    def test_falls_back_to_cloudpickle(self):
        bundle = loads_code(dumps_bundle([Entry(lambda x: x + 1, None), Entry(len, None)], ["a", "b"]))
        assert bundle[0].run([1]) == 2
        assert bundle[1].run(["abc"]) == 3

    def test_an_entry_that_cannot_be_pickled_is_named(self):
        import threading

        entries = [Entry(len, None), Entry(len, threading.Lock())]
        with pytest.raises(BundleError, match=r"\('x', 1\).*lock") as caught:
            dumps_bundle(entries, [("x", 0), ("x", 1)])
        assert caught.value.key == ("x", 1)
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), BundleError)

    def test_index(self):
        assert loads_index(dumps_index(70_000)) == 70_000
        assert loads_index(ByReference(3)) == 3
