"""Gates that a project keeps in a file: `gpu-report.toml`, or `[gpu-report]` in setup.cfg."""

from __future__ import annotations

import configparser
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpu_report.errors import UsageError
from gpu_report.ordinary_file import LARGEST_CONFIG, refuse_special

TOML, CFG, SECTION = "gpu-report.toml", "setup.cfg", "gpu-report"
KEYS = ("fail_on", "warn_on")


@dataclass(frozen=True)
class GateConfig:
    """The expressions of both levels, and the file that they come from; None where there is no file with gates."""

    fail_on: tuple[str, ...] = ()
    warn_on: tuple[str, ...] = ()
    path: Path | None = None


def read_config(path: Path | None = None, folder: Path = Path()) -> GateConfig:
    """Return the gates of a file, else of those in a folder, gpu-report.toml before setup.cfg; UsageError if broken."""
    if path is not None:
        return _read(path)
    found = (folder / name for name in (TOML, CFG))
    configs = (_read(each) for each in found if os.path.lexists(each))  # a link to nothing is no lack of gates
    return next((config for config in configs if config.path is not None), GateConfig())


def _read(path: Path) -> GateConfig:
    refuse_special(path, LARGEST_CONFIG)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    values = _of_toml(path, text) if path.suffix == ".toml" else _of_cfg(path, text)
    if values is None:
        return GateConfig()
    unknown = sorted(set(values) - set(KEYS))
    if unknown:
        raise UsageError(f"{path}: there is no setting {unknown[0]}; known are {' and '.join(KEYS)}")
    return GateConfig(values.get("fail_on", ()), values.get("warn_on", ()), path)


def _of_toml(path: Path, text: str) -> Mapping[str, tuple[str, ...]]:
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a TOMLDecodeError, and a number of thousands of digits
        raise UsageError(f"{path} is no TOML: {error}") from error
    values = {}
    for name, value in table.items():
        if isinstance(value, dict):
            raise UsageError(f"{path}: {' and '.join(KEYS)} stand at the top of the file: remove the line [{name}]")
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise UsageError(f'{path}: {name} is a list of gates: {name} = ["epoch_time:+5%"]')
        values[name] = tuple(value)
    return values


def _of_cfg(path: Path, text: str) -> Mapping[str, tuple[str, ...]] | None:
    parser = configparser.ConfigParser(interpolation=None)  # for "%" is part of a gate
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not parser.has_section(SECTION):
        return None
    lines = {name: value.splitlines() for name, value in parser.items(SECTION)}
    return {name: tuple(line.strip() for line in each if line.strip()) for name, each in lines.items()}
