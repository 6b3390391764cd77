"""One recording in its folder: what is opened when it begins, and closed in an order that loses nothing."""

import time
from dataclasses import dataclass
from pathlib import Path

from gpu_report import run_folder
from gpu_report.errors import UsageError
from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_command
from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.gpu.sampler import GpuWatch
from gpu_report.record.job.nccl_files import keep_nccl_files
from gpu_report.record.kernel_log.thread import KernelLogThread
from gpu_report.record.lifecycle import announcement, run_json
from gpu_report.record.lifecycle.command import Ended
from gpu_report.record.lifecycle.stop_request import RecordingEnd, StopRequest
from gpu_report.record.lifecycle.tick_loop import Session, SessionSources
from gpu_report.record.options import RecordOptions
from gpu_report.record.run_folder_writer import Say, earlier_start, open_journal
from gpu_report.record.yolo.watch import YoloWatch

KERNEL_LOG_FINISH_S = 2.0  # its thread wakes at once: one that does not waits for a file that hangs


@dataclass(frozen=True)
class StartedCommand:
    """The command that is recorded: its process, and when it was started."""

    pid: int
    at: Clocks


class OpenRecording:
    """A claimed run folder and everything that writes into it."""

    def __init__(self, options: RecordOptions, say: Say) -> None:
        """Claim the run folder and begin; UsageError when it is in use, or cannot be written."""
        folder = options.output or run_folder.claim_new_run(Path(run_folder.RUNS_DIR), time.time())
        segments, earlier = earlier_start(folder)
        if earlier.get("source", run_json.SOURCE) != run_json.SOURCE:
            raise UsageError(f"{folder} holds a run that was imported: name a new folder with --output")
        start = clocks.now()
        self._options = options
        self._since_wall_s = start.wall_s
        self._earlier = earlier
        self._say = say
        self._segment = segments + 1
        self._is_read = True
        self._ended: Ended | None = None
        self._journal = open_journal(folder, say)
        self._journal.event("recording_started", start, {"segment": self._segment})
        described = run_json.at_start(options, start, earlier)
        self._journal.describe(described)
        self._job = described["job"]
        self._yolo = YoloWatch(self.folder, start, options, run_json.earlier_yolo_runs(earlier))
        self._kernel_log = KernelLogThread(options.kernel_log, self._journal.event)

    @property
    def folder(self) -> Path:
        """Return the run folder."""
        return self._journal.folder

    @property
    def outcome(self) -> str:
        """Return what is said at the end."""
        own = self._options.own_report
        lossy, is_read = self._journal.lossy, self._is_read
        return announcement.ending(self.folder, lossy=lossy, is_read=is_read, own_report=own, ended=self._ended)

    def run(self, gpus: GpuWatch, command: StartedCommand | None, ending: StopRequest) -> None:
        """Record until the end, and close."""
        if command is not None:
            fields = {"pid": command.pid, "command": list(hide_in_command(self._options.command))}
            self._journal.event("command_started", command.at, fields)
        gpus.go_on_from(self._earlier)
        continues = self._segment > 1
        self._say(announcement.beginning(gpus.answer, self._options, self.folder, continues=continues))
        if other := announcement.other_command(self._earlier.get("command"), hide_in_command(self._options.command)):
            self._say(other)
        surroundings = SessionSources(self._journal, gpus, self._yolo, None if command is None else command.pid)
        session = Session(self._options, surroundings, self._say)
        end = session.run(ending)
        gpus.finish()
        self._is_read = continues or bool(gpus.devices) or run_folder.has_callbacks(self.folder)
        if gpus.devices:
            self._journal.describe({"gpus": gpus.described()})
        self._ended = end.command
        self._finish(end, session)

    def discard(self) -> None:
        """Take back a recording whose command never started; a folder that held an earlier one keeps that."""
        self._kernel_log.finish(KERNEL_LOG_FINISH_S)
        if self._segment == 1:
            self._journal.remove()
        else:
            fields = {"ended_by": "command", "signal": None, "exit_code": None}
            self._journal.event("recording_ended", clocks.now(), fields)
            self._journal.describe(self._earlier, anew=True)
        self._journal.close()

    def _finish(self, end: RecordingEnd, session: Session) -> None:
        ended = end.command
        self._kernel_log.finish(KERNEL_LOG_FINISH_S)
        if ended is not None:
            self._journal.event("command_ended", ended.at, ended.as_fields())
        at = clocks.now()
        code = None if ended is None else ended.code
        fields = {"ended_by": end.ended_by, "signal": end.signal_name, "exit_code": code}
        self._journal.event("recording_ended", at, fields)
        self._journal.settle(at, last=True)
        recorder = session.cost.summary(session.errors)
        job = run_json.job_to_the_end(self._job, self.folder)
        seen = {"yolo": self._yolo.as_json(), "oom_kills": session.oom_kills, "job": job}
        self._journal.describe({**run_json.at_end(at, end.ended_by, ended, recorder), **seen})
        # after all else is safe on the disk: who ends us now may not wait
        if ended is not None and (left := session.left_behind()) is not None:
            self._journal.event("left_behind", at, left)
            self._say(announcement.left_behind(left["pids"]))
        self._keep_nccl_files()
        self._journal.close()

    def _keep_nccl_files(self) -> None:
        try:
            keep_nccl_files(self.folder, self._since_wall_s, self._options.command)
        except Exception as error:  # noqa: BLE001 - files of other programs: what is odd in them must not spoil the end
            self._say(f"NCCL's files were not kept ({error!r})")
