"""`denizen db move` beside a running server: a turn that is under way is answered once, from the new store."""

from __future__ import annotations

import signal
from contextlib import closing

import pytest

from denizen.domain.turn import TurnStatus
from denizen.testing.model_server import ModelAnswer
from tests.e2e.home import Home, Server
from tests.e2e.home import get_completion_text as said
from tests.e2e.process import ProcessResult
from tests.e2e.provider import Provider
from tests.e2e.records import read_turns

pytestmark = pytest.mark.e2e
pytest_plugins = ["tests.postgres"]


def test_a_turn_that_writes_after_the_switch_goes_on_when_the_server_has_restarted(
    home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url)
    answer = provider.hold(ModelAnswer(text="Done."))
    provider.script(ModelAnswer(text="Done."))  # for the case that the restart came before the first answer
    target = f"sqlite:///{home.folder / 'new.db'}"
    with home.serve() as server, closing(server.send("Hello", key="m1")):
        provider.requests.await_count(1)
        assert "Moved to" in home.do("db", "move", "--to", target).out
        answer.release()
        url = server.running.err.await_text(r"Restarting\.\n(?:.*\n)*?Denizen is ready: (http://\S+)\n")[1]
        assert said(Server(server.running, url).ask("Hello", key="m1")) == "Done."
        log = server.running.err.text
        server.running.stop(signal.SIGTERM)
    assert "Traceback" not in log
    [(turn, talk)] = read_turns(target)
    assert turn.status is TurnStatus.DONE
    assert [text for _, text in talk] == ["Hello", "Done."]


def test_a_home_folder_that_still_names_the_old_database_says_where_to_write_the_new_one(
    home: Home, provider: Provider
) -> None:
    other = Home(home.folder.with_name("other"))
    home.configure(provider.server.openai_url)
    other.configure(provider.server.openai_url, rest=f'store: {{url: "{home.store_url}"}}\n')
    provider.script(ModelAnswer(text="Hi."))
    assert home.do("ask", "--no-stream", "Hello").code == 0
    assert "Moved to" in home.do("db", "move", "--to", f"sqlite:///{home.folder / 'new.db'}").out
    told = other.do("run", "--port", "0")
    assert told.code
    assert "The data has moved to another database." in told.err
    assert "write that address as store.url into denizen.yaml first" in told.err
    assert "new.db" in home.do("db", "status").out


@pytest.mark.xdist_group("postgres")
def test_an_interrupt_stops_a_move_which_goes_on_when_it_is_started_again(
    home: Home, provider: Provider, postgres_url: str
) -> None:
    home.configure(provider.server.openai_url)
    provider.script(ModelAnswer(text="Hi."))
    assert home.do("ask", "--no-stream", "Hello").code == 0
    move = ("db", "move", "--to", postgres_url)
    with home.start(*move, before="import signal; signal.signal(signal.SIGINT, signal.default_int_handler)") as running:
        running.err.await_text("comparing|following|switching")
        stopped: ProcessResult = running.stop(signal.SIGINT)
    assert "Traceback" not in stopped.err
    if stopped.code:  # else it was done before the interrupt arrived
        assert "The old database stays in use" in stopped.err
        assert "has begun" in home.do("db", "status").out
        assert "Moved to" in home.do(*move).out
    assert home.do("db", "status").out.startswith("postgresql: ")


@pytest.mark.proves("V25")
def test_an_owner_moves_the_store_of_a_running_server_from_the_terminal(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=f'store: {{move_to: "sqlite:///{home.folder / "new.db"}"}}\n')
    with home.serve() as server:
        told = home.do("chat", stdin="/migrate\n/migrate to-postgres\n/migrate cancel\n").out
        assert "The store is in SQLite" in told
        assert "Write /migrate to-postgres yes." in told
        assert "No move is under way." in told
        assert "The store has moved to" in home.do("chat", stdin="/migrate to-postgres yes\n").out
        server.running.err.await_text(r"Restarting\.\n(?:.*\n)*?Denizen is ready")
    assert "new.db" in home.do("db", "status").out
    alone = home.do("chat", stdin="/migrate to-postgres yes\n").out
    assert "Move it with `denizen db move`." in alone
