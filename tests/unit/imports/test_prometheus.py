"""Import of dcgm-exporter's metrics: what Debian's Prometheus answered for a real run, and a server that is asked."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest
from click.testing import CliRunner

from gpu_report.analyse import analyse
from gpu_report.cli import cli
from gpu_report.errors import InputError, UsageError
from gpu_report.imports.formats import format_of
from gpu_report.imports.formats.prometheus_api import MOST_POINTS, fetch, pieces
from gpu_report.imports.selection import Selection
from gpu_report.load import load_run

from .conftest import DATA, Imported

ANSWER = "imports/dcgm-answer.json"


def series(name="DCGM_FI_DEV_GPU_UTIL", values=((0, "5"),), **labels):
    return {"metric": {"__name__": name, "gpu": "0", "UUID": "GPU-1", **labels}, "values": [list(v) for v in values]}


def answer(*found):
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(found)}})


def test_a_real_answer(imported):
    run = imported(ANSWER)
    assert (run.facts["source"], run.facts["interval_s"], run.facts["host"]["name"]) == ("dcgm-exporter", 5.0, "node1")
    assert [gpu["uuid"][:8] for gpu in run.facts["gpus"]] == ["GPU-37fb", "GPU-0000"]
    assert run.facts["driver"] == "580.159.04"
    assert {gpu: len(run.column("gpu_util_pct", gpu)) for gpu in (0, 1)} == {0: 33, 1: 33}
    assert None not in run.column("gpu_util_pct", 1)  # a pod's labels came after a minute: the GPU is one all the same


def test_units_are_ours(imported):
    """What was played are the readings of a recorder: mJ, ratios and bytes a second in the answer."""
    run = imported(ANSWER)
    energy, power = run.column("energy_j"), run.column("power_w")
    seconds = [float(row["mono_s"]) for row in run.rows if row["gpu"] == "0"]
    assert (energy[-1] - energy[0]) / (seconds[-1] - seconds[0]) == pytest.approx(sum(power) / len(power), rel=0.15)
    assert 50 < max(run.column("sm_active_pct")) <= 100
    assert 1 < max(run.column("pcie_tx_mib_s")) < 1000


def test_a_blank_is_missing(imported):
    run = imported(ANSWER)
    assert set(run.column("memory_temperature_c")) == {None}


@pytest.mark.parametrize("space", ["", " "])
def test_an_error_of_prometheus_is_said(written, tmp_path, space):
    said = f'{{"status":{space}"error","errorType":"bad_data","error":"invalid parameter: parse error"}}'
    log, output = str(written(said, "answer.json")), str(tmp_path / "run")
    done = CliRunner().invoke(cli, ["import", log, "--output", output])
    assert done.exit_code != 0
    assert "Prometheus answered (invalid parameter: parse error)" in str(done.exception)


@pytest.mark.parametrize("blank", ["9223372036854775794", "2147483632", "140737488355328", "NaN", "+Inf", "-1"])
def test_what_is_no_reading_is_missing(imported, written, blank):
    log = written(answer(series(values=((0, "7"), (30, blank), (60, "8")))), "answer.json")
    assert imported(log).column("gpu_util_pct") == [7, None, 8]


def test_metrics_without_a_place_are_listed(imported):
    assert any("DCGM_FI_DEV_ENC_UTIL" in note for note in imported(ANSWER).notes)


def test_an_xid_is_an_event_when_it_comes(imported):
    run = imported(ANSWER)
    (event,) = run.of_kind("xid")
    assert (event["gpu"], event["code"]) == (1, 31)
    assert "keeps the last one alone" in run.of_kind("xid_events")[0]["reason"]


def test_an_xid_from_before_is_said_and_is_no_event(imported, written):
    log = written(answer(series(), series("DCGM_FI_DEV_XID_ERRORS", ((0, "79"), (30, "79")))), "answer.json")
    run = imported(log)
    assert run.of_kind("xid") == []
    assert "GPU 0 had Xid 79 at some time before the log begins." in run.notes


def test_engine_activity_stands_for_utilisation_where_there_is_none(imported, written):
    log = written(answer(series("DCGM_FI_PROF_GR_ENGINE_ACTIVE", ((0, "0.5"),))), "answer.json")
    assert imported(log).column("gpu_util_pct") == [50]


def test_labels_choose(imported):
    run = imported(ANSWER, selection=Selection((("hpc_job", "4711"), ("gpu", "1"))))
    assert {row["gpu"] for row in run.rows} == {"1"}
    assert len(run.rows) < 33  # the job began later
    with pytest.raises(
        InputError, match="no series of dcgm-exporter or nvidia_gpu_exporter with pod=other was found among 34 series"
    ):
        imported(ANSWER, selection=Selection((("pod", "other"),)))


def test_a_renamed_label_is_the_same(imported, written):
    log = written(answer(series(exported_pod="yolo", pod="exporter"), series(gpu="1", exported_pod="b")), "a.json")
    assert len(imported(log, selection=Selection((("pod", "yolo"),))).rows) == 1


def test_several_hosts_are_refused_with_the_way_out(imported, written):
    log = written(answer(series(Hostname="a"), series(hostname="b")), "answer.json")
    with pytest.raises(InputError, match=r"2 hosts: choose one with --label Hostname=NAME \(a, b\)"):
        imported(log)
    assert len(imported(log, selection=Selection((("Hostname", "b"),))).rows) == 1


def test_a_part_of_a_gpu_is_not_the_gpu(imported, written):
    log = written(answer(series(), series(values=((0, "99"),), GPU_I_ID="1", GPU_I_PROFILE="1g.5gb")), "answer.json")
    run = imported(log)
    assert run.column("gpu_util_pct") == [5]
    assert any("MIG devices" in note for note in run.notes)


def test_a_cut_answer_is_refused(imported, written):
    with pytest.raises(InputError, match=r"no series of .* was found; 1 object of .* is no whole JSON"):
        imported(written(answer(series())[:-20], "answer.json"), source="prometheus")


def test_values_of_a_moment_are_refused_with_the_way_out(imported, written):
    of_now = {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [0, "1"]}]}}
    with pytest.raises(InputError, match="the values of one moment: save what /api/v1/query_range"):
        imported(written(json.dumps(of_now), "answer.json"))


def test_series_without_names_are_said(imported, written):
    nameless = {"metric": {"gpu": "0"}, "values": [[0, "1"]]}
    with pytest.raises(InputError, match=r"was found \(found: a series without a name\)"):
        imported(written(answer(nameless), "answer.json"))


def promtool(found):
    return json.dumps(found)


def victoria_metrics(found):
    lines = ({"metric": each["metric"], "values": [float(value) for _, value in each["values"]]} for each in found)
    stamps = ([int(at * 1000) for at, _ in each["values"]] for each in found)
    return "".join(json.dumps({**line, "timestamps": at}) + "\n" for line, at in zip(lines, stamps, strict=True))


@pytest.mark.parametrize("saved", [promtool, victoria_metrics])
def test_series_that_another_tool_saved(imported, written, saved):
    found = json.loads((DATA / ANSWER).read_text())["data"]["result"]
    assert imported(written(saved(found), "answer.json")).rows == imported(ANSWER).rows


def test_hosts_without_a_name_are_told_apart_by_their_address(imported, written):
    both = answer(series(instance="10.0.0.1:9400"), series(UUID="GPU-2", instance="10.0.0.2:9400"))
    log = written(both, "answer.json")
    with pytest.raises(InputError, match=r"2 hosts: choose one with --label instance=NAME \(10.0.0.1:9400, 10"):
        imported(log)
    assert len(imported(log, selection=Selection((("instance", "10.0.0.2:9400"),))).rows) == 1


def test_an_exporter_whose_address_changed_is_one_host(imported, written):
    log = written(answer(series(instance="a"), series(values=((30, "7"),), instance="b")), "answer.json")
    assert imported(log).column("gpu_util_pct") == [5, 7]


class TestNvidiaGpuExporter:
    """Names and units as its own tests have them, of an H200 with driver 590."""

    UUID = "00000000-0000-0000-0000-00000000000"

    def gpu(self, number, in_labels=None, **values):
        def one(name, value, /, **labels):
            labels = {"__name__": f"nvidia_smi_{name}", "uuid": f"{self.UUID}{number}", "instance": "a:9835", **labels}
            return {"metric": labels, "values": [[0, value], [15, value]]}

        info = {
            "name": "NVIDIA H200",
            "driver_version": "590.48.01",
            **({} if in_labels is None else {"index": in_labels}),
        }
        return [one("gpu_info", "1", **info), *(one(name, value) for name, value in values.items())]

    def test_units_are_ours(self, imported, written):
        load = {
            "utilization_gpu_ratio": "0.97",
            "memory_used_bytes": "2.9605494784e+10",
            "power_draw_watts": "610.25",
            "clocks_current_sm_clock_hz": "1.98e+09",
            "clocks_event_reasons_active": "4",
            "clocks_event_reasons_counters_sw_power_cap_seconds": "1.25",
            "fan_speed_ratio": "0.5",
        }
        run = imported(written(answer(*self.gpu(1, **load)), "answer.json"))
        assert run.facts["source"] == "nvidia_gpu_exporter"
        assert (run.facts["driver"], run.facts["gpus"][0]["name"]) == ("590.48.01", "NVIDIA H200")
        assert run.facts["gpus"][0]["uuid"] == f"GPU-{self.UUID}1"
        row = run.rows[0]
        assert (row["gpu_util_pct"], row["memory_used_mib"], row["power_w"]) == ("97", "28234", "610.2")
        assert (row["sm_clock_mhz"], row["clock_event_reasons"], row["power_cap_s"]) == ("1980", "4", "1.25")
        assert any("nvidia_smi_fan_speed_ratio" in note for note in run.notes)

    @pytest.mark.parametrize("by", ["info", "value"])
    def test_the_index_is_nvidia_smi_s(self, imported, written, by):
        def gpu(number, index, util):
            named = {"index": index} if by == "value" else {}
            return self.gpu(number, index if by == "info" else None, utilization_gpu_ratio=util, **named)

        run = imported(written(answer(*gpu(1, "1", "0.5"), *gpu(2, "0", "0.25")), "answer.json"))
        assert (run.column("gpu_util_pct", 0), run.column("gpu_util_pct", 1)) == ([25, 25], [50, 50])

    def test_beside_dcgm_exporter_it_adds_what_that_has_not(self, imported, written):
        of_dcgm = series(values=((0, "50"), (15, "50")), UUID=f"GPU-{self.UUID}1", gpu="3")
        mine = self.gpu(1, utilization_gpu_ratio="0.9", power_draw_watts="300")
        run = imported(written(answer(*mine, of_dcgm), "answer.json"))
        assert {row["gpu"] for row in run.rows} == {"3"}
        assert (run.column("gpu_util_pct", 3), run.column("power_w", 3)) == ([50, 50], [300, 300])

    def test_what_cannot_be_seen_names_the_exporter_s_scraper(self, imported, written):
        run = imported(written(answer(*self.gpu(1, utilization_gpu_ratio="0.9", memory_used_bytes="3e10")), "a.json"))
        skipped = analyse(load_run(run.folder)).not_checked
        assert next(each.reason for each in skipped if each.rule == "drop").endswith("let Prometheus scrape every 3 s")


def test_a_gpu_of_5000_digits_is_none(imported, written):
    run = imported(written(answer(series(), series(gpu="9" * 5000)), "answer.json"))
    assert {row["gpu"] for row in run.rows} == {"0"}


def test_it_is_known_by_its_content():
    assert format_of(DATA / ANSWER) == "prometheus"


@pytest.mark.parametrize("points", [1, MOST_POINTS, MOST_POINTS + 1, 3 * MOST_POINTS])
def test_pieces_are_of_one_grid_and_small_enough(points):
    found = list(pieces(100.0, 100.0 + (points - 1) * 15.0, 15.0))
    grid = [at for begin, end in found for at in range(int(begin), int(end) + 1, 15)]
    assert grid == [100 + 15 * point for point in range(points)]
    assert all((end - begin) / 15 + 1 <= MOST_POINTS for begin, end in found)


@pytest.mark.parametrize(
    "address",
    [
        "http://u:sec?ret@host/",
        "http://u:123?sec@host/",
        "http://u:123/sec@host/api/v1/query_range?query=up",
        "http://u:p@sec#ret@host/",
        "http://u:sec[ret@host/",
        "http://host:sec",
        "http://[sec",
        "http://",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_repeated(address):
    with pytest.raises(UsageError, match="no address of a server: write http://HOST:PORT") as raised:
        list(fetch(Selection(server=address, start_s=0.0, end_s=60.0, step_s=30.0)))
    assert not any(part in str(raised.value) for part in ("sec", "ret", "123"))


def test_a_query_of_a_moment_is_no_password():
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9 did not answer"):
        list(fetch(Selection(server="http://127.0.0.1:9/api/v1/query_range?query=up @ 9&start=0&end=60&step=30")))


@pytest.mark.parametrize(
    "given",
    [
        "start=0&end=60&step=nan",
        "start=0&end=60&step=inf",
        "start=0&end=60&step=-30",
        "start=0&end=60&step=0",
        "start=0&end=60&step=1e-9",
        "start=0&end=60&step=30s",
        "start=0&end=inf&step=30",
        "start=nan&end=60&step=30",
        "start=0&end=1e300&step=30",
    ],
)
def test_a_span_that_has_no_end_is_not_asked_for(given):
    with pytest.raises(UsageError, match="= of the address"):
        list(fetch(Selection(server=f"http://127.0.0.1:9/api/v1/query_range?{given}")))


@pytest.mark.parametrize(
    "said",
    [b"sec\x1bret\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n{"],
    ids=["another protocol", "cut off"],
)
def test_what_is_no_whole_answer_is_one_line(said):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def speak():
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(said)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65_536):  # closed with a part unread, the connection would be reset
                    pass

        thread = threading.Thread(target=speak)
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(InputError, match="no whole JSON over HTTP") as raised:
            list(fetch(Selection(server=address, start_s=0.0, end_s=60.0, step_s=30.0)))
        thread.join()
    assert "ret" not in str(raised.value)


def test_a_token_that_no_header_can_hold_is_not_repeated(monkeypatch):
    monkeypatch.setenv("PROMETHEUS_TOKEN", "s3c\nret")
    with pytest.raises(InputError, match="PROMETHEUS_TOKEN") as raised:
        list(fetch(Selection(server="http://127.0.0.1:9", start_s=0.0, end_s=60.0, step_s=30.0)))
    assert "s3c" not in str(raised.value)


@pytest.fixture
def server():
    """A server that answers as Prometheus does, and remembers what it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.server.asked.append((self.path, {k: v[0] for k, v in parse_qs(body).items()}, dict(self.headers)))
            status, text = self.server.answers(self.path, self.server.asked[-1][1])
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/stolen")
            self.end_headers()
            self.wfile.write(text.encode())

    class Server(HTTPServer):
        asked: list
        answers: object

    played = Server(("127.0.0.1", 0), Handler)
    played.asked = []

    def answers(path, asked):
        if path.endswith("/query"):
            return 200, answer(series(values=[(at, "1") for at in (10, 40, 70)]))
        return 200, answer(series(values=((float(asked["start"]), "3"), (float(asked["end"]), "4")), pod="yolo"))

    played.answers = answers
    thread = threading.Thread(target=played.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield played
    played.shutdown()
    thread.join()
    played.server_close()


class TestServer:
    def ask(self, tmp_path, server, *options, path="", user=""):
        output = tmp_path / "run"
        address = f"http://{user}127.0.0.1:{server.server_port}{path}"
        done = CliRunner().invoke(cli, ["import", address, "--output", str(output), *map(str, options)])
        return done, output

    def test_a_span_is_asked_for_at_the_server_s_own_interval(self, tmp_path, server):
        done, output = self.ask(tmp_path, server, "--start", 1000, "--end", 1600, "--label", "pod=yolo")
        assert done.exit_code == 0, done.output
        raw, ranged = server.asked[0], server.asked[-1]
        assert raw[1]["query"] == '{__name__=~"DCGM_FI_DEV_GPU_UTIL|nvidia_smi_utilization_gpu_ratio",pod="yolo"}[10m]'
        assert (ranged[0], float(ranged[1]["step"])) == ("/api/v1/query_range", 30)
        assert 'exported_pod="yolo"' in ranged[1]["query"]
        assert Imported(output, ()).column("gpu_util_pct") == [3, 4]

    def test_a_long_span_is_asked_for_in_pieces(self, tmp_path, server):
        done, _ = self.ask(tmp_path, server, "--start", 0, "--end", 25_000, "--step", 1)
        assert done.exit_code == 0, done.output
        assert [(float(a["start"]), float(a["end"])) for _, a, _ in server.asked] == [
            (0, 10_999),
            (11_000, 21_999),
            (22_000, 25_000),
        ]

    def test_an_address_with_a_query_of_its_own(self, tmp_path, server):
        path = "/prom/api/v1/query_range?query=DCGM_FI_DEV_GPU_UTIL&start=100&end=200&step=15"
        done, _ = self.ask(tmp_path, server, path=path)
        assert done.exit_code == 0, done.output
        ((path, asked, _),) = server.asked
        assert path == "/prom/api/v1/query_range"
        assert asked == {"query": "DCGM_FI_DEV_GPU_UTIL", "start": "100.0", "end": "190.0", "step": "15.0"}

    def test_a_token_is_sent_and_kept_nowhere(self, tmp_path, server, monkeypatch):
        monkeypatch.setenv("PROMETHEUS_TOKEN", "s3cret-token")
        done, output = self.ask(tmp_path, server, "--start", 0, "--end", 60, "--step", 30)
        assert server.asked[0][2]["Authorization"] == "Bearer s3cret-token"
        assert "s3cret" not in done.output + "".join(path.read_text() for path in output.iterdir())

    def test_a_password_is_sent_and_kept_nowhere(self, tmp_path, server):
        done, output = self.ask(tmp_path, server, "--start", 0, "--end", 60, "--step", 30, user="me:p%40ss@")
        assert server.asked[0][2]["Authorization"] == "Basic bWU6cEBzcw=="
        assert "ss@" not in done.output + "".join(path.read_text() for path in output.iterdir())

    def test_a_redirect_is_not_followed(self, tmp_path, server, monkeypatch):
        monkeypatch.setenv("PROMETHEUS_TOKEN", "s3cret-token")
        server.answers = lambda *_: (302, "")
        done, _ = self.ask(tmp_path, server, "--start", 0, "--end", 60, "--step", 30)
        assert "answered 302" in str(done.exception)
        assert "s3cret" not in str(done.exception)

    @pytest.mark.parametrize(
        ("status", "text", "said"),
        [
            (
                400,
                '{"status":"error","error":"exceeded maximum\\nresolution"}',
                "answered 400 exceeded maximum resolution",
            ),
            (401, "", "PROMETHEUS_TOKEN"),
            (200, "<html>", "did not answer as Prometheus does"),
            (200, "[]", "did not answer as Prometheus does"),
            (200, "[" * 200_000, "did not answer as Prometheus does"),
            (200, '{"status":"success","data":null}', "no series of dcgm-exporter"),
            (400, "[" * 1_900, "answered 400"),
        ],
    )
    def test_what_it_refuses_is_one_line(self, tmp_path, server, status, text, said):
        server.answers = lambda *_: (status, text)
        done, output = self.ask(tmp_path, server, "--start", 0, "--end", 60, "--step", 30)
        assert isinstance(done.exception, InputError)
        assert said in str(done.exception)
        assert "\n" not in str(done.exception)
        assert not output.exists()

    @pytest.mark.parametrize(
        "data",
        [
            None,
            [],
            {"result": None},
            {"result": [None]},
            {"result": [{"metric": {}, "values": 1}]},
            {"result": [{"metric": {}, "values": [[0, "1"], ["x", "1"], 3]}]},
        ],
    )
    def test_an_interval_that_cannot_be_seen_is_the_default(self, tmp_path, server, data):
        whole = server.answers
        raw = json.dumps({"status": "success", "data": data})
        server.answers = lambda path, asked: (200, raw) if path.endswith("/query") else whole(path, asked)
        done, _ = self.ask(tmp_path, server, "--start", 0, "--end", 60)
        assert done.exit_code == 0, done.output
        assert server.asked[-1][1]["step"] == "30.0"

    def test_a_server_needs_a_span(self, tmp_path, server):
        for options in ((), ("--start", 60, "--end", 0)):
            done, _ = self.ask(tmp_path, server, *options)
            assert isinstance(done.exception, UsageError)
            assert "--start and --end" in str(done.exception)

    def test_a_label_has_a_name_and_a_value(self, tmp_path, server):
        done, _ = self.ask(tmp_path, server, "--label", "pod")
        assert "no NAME=VALUE" in str(done.exception)

    def test_nobody_answers(self, tmp_path):
        done = CliRunner().invoke(
            cli,
            [
                "import",
                "http://127.0.0.1:9",
                "--start",
                "0",
                "--end",
                "60",
                "--step",
                "30",
                "--output",
                str(tmp_path / "r"),
            ],
        )
        assert "127.0.0.1:9 did not answer" in str(done.exception)
