from denizen.domain.hook import Hook, Hooks, fill_args
from denizen.domain.json import JsonObject


def test_variables_are_filled_into_texts_at_any_depth_and_nowhere_else() -> None:
    args: JsonObject = {"q": "since {{last_run}}", "n": 3, "in": {"{{last_run}}": ["{{ last_run }}", True, None]}}

    filled = fill_args(args, {"last_run": "noon"})

    assert filled == {"q": "since noon", "n": 3, "in": {"{{last_run}}": ["noon", True, None]}}


def test_what_is_filled_in_is_not_filled_again_and_unknown_names_stay() -> None:
    filled = fill_args({"q": "{{a}} {{b}} {{no}} { {a}}"}, {"a": "{{b}}", "b": "{{a}}"})

    assert filled == {"q": "{{b}} {{a}} {{no}} { {a}}"}


def test_hooks_add_up_in_order() -> None:
    first, second, third = Hook("first"), Hook("second"), Hook("third")

    assert Hooks((first,), (third,)) + Hooks((second,)) == Hooks((first, second), (third,))
    assert not Hooks() and Hooks(after=(first,))
