"""Secrets as they stand in command lines, YAML, kernel lines and exceptions, and what only looks like them.

Values are made up: none has ever been valid. Each shape is put together here, so that no scanner takes them for real.
"""

from dataclasses import dataclass

RANDOM = "q7Rk2vX9sLw4Tz8b"
WORDY = "Tr0ub4dor-3"
HEX40 = "9f3c1e7a5b2d8064c9e1f7a3b5d2806491ce7fa3"
UUID = "3f2b8c1e-7a4d-4e9b-9c61-0d5e8f7a2b34"


@dataclass(frozen=True)
class Case:
    """`text` is a command's words (a tuple), or YAML or any text; `secret` must not be left of it, None: harmless."""

    kind: str
    text: tuple[str, ...] | str
    secret: str | None = None


OPTIONS = [
    "--pass",
    "--password",
    "--passwd",
    "--token",
    "--hf-token",
    "--api-key",
    "--apikey",
    "--api_key",
    "--secret",
    "--client-secret",
    "--auth-token",
    "--access-key",
    "--secret-key",
    "--key",
    "--ssh_key",
    "--wandb-key",
    "--db-password",
    "--passphrase",
    "--credential",
    "--bearer",
    "--jwt",
]
PAIRS = [
    "pass",
    "password",
    "DB_PASS",
    "PGPASSWORD",
    "MYSQL_PWD",
    "token",
    "api_token",
    "HF_TOKEN",
    "WANDB_API_KEY",
    "api.key",
    "ssh_key",
    "AccountKey",
    "client_secret",
    "AWS_SECRET_ACCESS_KEY",
    "accessToken",
    "dbPassword",
    "private_key",
    "session_token",
    "auth",
    "cookie",
    "dsn",
    "otp",
]
HYDRA = ("+wandb.key=", "++api.token=", "+db.password=", "~auth.token=", "--env=TOKEN=", "--build-arg=NPM_TOKEN=")
SHAPES = {
    "wandb": "wandb_v1_" + RANDOM * 2,
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + RANDOM,
    "npm": "npm_" + RANDOM + RANDOM + "aB3d",
    "docker": "dckr_pat_" + RANDOM + "x_Y",
    "sendgrid": "SG." + RANDOM + "." + RANDOM + RANDOM,
    "google-secret": "GOCSPX-" + RANDOM,
    "runpod": "rpa_" + RANDOM.upper(),
    "huggingface": "hf_" + RANDOM + RANDOM,
    "aws": "AKIA" + "IOSFODNN7EXAMPL2",
    "github": "ghp_" + RANDOM * 2,
    "github-fine": "github_pat_" + RANDOM * 2,
    "gitlab": "glpat-" + RANDOM,
    "slack": "xoxb-" + "123456789012-" + RANDOM,
    "google": "AIza" + RANDOM + RANDOM + "abc",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + RANDOM,
    "openai": "sk-" + RANDOM * 2,
    "stripe": "sk_" + "live_" + RANDOM,
    "replicate": "r8_" + RANDOM * 2,
    "nvidia": "nvapi-" + RANDOM * 2,
    "vault": "hvs." + RANDOM * 2,
    "telegram": "1234567890:AA" + RANDOM + RANDOM,
}
HEADERS = (
    "X-Api-Key: ",
    "X-Auth-Token: ",
    "PRIVATE-TOKEN: ",
    "Cookie: session=",
    "Authorization: Bearer ",
    "Authorization: ",
)
URLS = (
    "https://u:{}@host/path",
    "https://u:a@{}@host",
    "https://u:a/{}@host",
    "postgres://me:{}@db.local:5432/runs",
    "https://{}@github.com/me/repo.git",
    "https://host/d.zip?X-Amz-Signature={}&x=1",
    "https://host/d.zip?sig={}",
    "https://host/x?access_token={}#top",
    "https://host/cb#access_token={}&state=1",
    "https://hooks.slack.com/services/T000/B000/{}",
    "https://discord.com/api/webhooks/1234567890/{}",
    "rtsp://admin:{}@10.0.0.4:554/stream1",
)
TEXTS = (
    "failed: api_key='{}' at 3",
    'HTTPError: 401 {{"token": "{}"}}',
    "RuntimeError: login failed, password={}, retrying",
    'audit: cmd="train --token {} --epochs 3"',
    "systemd[1]: Environment=HF_TOKEN={}",
    "ValueError: {{'api_key': '{}', 'batch': 16}}",
    "requests.get('https://me:{}@host/x') failed",
    "kernel: usercopy: DB_PASS={};HOME=/root",
    'File "/home/me/token={}/train.py", line 3, in <module>',
    "Authorization: Bearer {} was refused",
    "curl: (22) X-Api-Key: {}",
    "-----BEGIN PRIVATE KEY-----\nMII{}\n-----END PRIVATE KEY-----",
)
YAMLS = (
    "password: {}\n",
    "api_key: '{}'\n",
    'hf_token: "{}"\n',
    "wandb:\n  key: {}\n  project: x\n",
    "logger: {{name: wandb, token: {}}}\n",
    'logger: {{"api_key": "{}", a: 1}}\n',
    "token: |\n  {}\nbatch: 16\n",
    "token: >-\n    {}\nbatch: 16\n",
    "token:\n  {}\nbatch: 16\n",
    "tokens:\n- {}\n- b\nbatch: 16\n",
    "tokens:\n  - {}\nbatch: 16\n",
    "tokens: [{}, b]\n",
    "- token: {}\n- b: 1\n",
    "auth:\n  user: me\n  pw: {}\nbatch: 16\n",
    "source: rtsp://me:{}@cam/1\n",
    "data: 'https://h/d.zip?token={}&x=1'\n",
    "env: TOKEN={}\n",
    "# token: {}\nbatch: 16\n",
)

SECRET_NAMES = [
    *PAIRS,
    *("passwd", "passphrase", "hf-token", "hubToken", "refresh_token", "API-KEY", "wandb.api_key", "SharedAccessKey"),
    *("secrets", "basic_auth", "X-Api-Key", "X-Auth-Token", "PRIVATE-TOKEN", "encryption_key", "db.auth.password"),
    *("storepass", "RootPass", "token2", "2fa_token", "key2_token"),
]
SECRET_VALUES = ("sunflowerfield", "Ahorn-Birke42", "83920174", RANDOM, "pX9c/V4+mZ7kLw2Tn8QQ==", "Som,mer;24")
# How a name (n) and its value (v) stand in commands, texts and YAML.
FORMS: dict[str, tuple[str, tuple[str, ...] | str]] = {
    "option": ("command", ("python", "--{n}", "{v}")),
    "option=": ("command", ("python", "--{n}={v}")),
    "pair": ("command", ("python", "{n}={v}")),
    "hydra": ("command", ("python", "++a.{n}={v}")),
    "-e": ("command", ("docker", "run", "-e", "{n}={v}")),
    "glued": ("command", ("docker", "run", "-e{n}={v}")),
    "json": ("command", ("x", '{{"{n}": "{v}"}}')),
    "script": ("command", ("sh", "-c", "yolo train --{n} '{v}' --b 1")),
    "assertion": ("text", "failed: {n}={v} at 3"),
    "keyword": ("text", "f({n}='{v}', b=1)"),
    "dict": ("text", "x {{'a': 1, '{n}': '{v}'}}"),
    "escaped": ("text", 'x {{\\"{n}\\": \\"{v}\\"}}'),
    "unquoted option": ("text", "cmd --{n} {v} -b 1"),
    "environ": ("text", "env['{n}'] = '{v}'"),
    "tuple": ("text", "[('{n}', '{v}')]"),
    "element": ("text", "<{n}>{v}</{n}>"),
    "attributes": ("text", '<add key="{n}" value="{v}"/>'),
    "argv": ("text", "Command '['x', '--{n}', '{v}']' failed"),
    "query": ("text", "https://h/x?a=1&{n}={v}"),
    "sent header": ("text", "b'GET / HTTP/1.1\\r\\n{n}: {v}1\\r\\nHost: h'"),
    "audit": ("text", 'audit: a0="x" a1="--{n}" a2="{v}"'),
    "pydantic": ("text", "error for S\n{n}\n  Input should be x [type=int_parsing, input_value='{v}', input_type=str]"),
    "yaml": ("yaml", "a:\n  {n}: {v}\n  b: 1\n"),
    "flow": ("yaml", "a: {{{n}: '{v}', c: 1}}\n"),
    "block": ("yaml", "{n}: |\n  {v}\nb: 1\n"),
    "below": ("yaml", "{n}:\n- {v}\nb: 1\n"),
    "asked": ("yaml", "? {n}\n: {v}\n"),
    "named": ("yaml", "env:\n- name: {n}\n  value: '{v}'\n"),
    "anchor": ("yaml", "a: &x '{v}'\n{n}: *x\n"),
}


def secrets() -> list[Case]:
    """Return texts that hold a secret each."""
    found = [Case("option", ("yolo", option, value), value) for option in OPTIONS for value in (RANDOM, WORDY)]
    found += [Case("pair", ("yolo", f"{name}={RANDOM}"), RANDOM) for name in PAIRS]
    found += [Case("colon", ("yolo", f"{name}:{RANDOM}"), RANDOM) for name in ("token", "password", "api_key")]
    found += [Case("hydra", ("train", f"{start}{RANDOM}"), RANDOM) for start in HYDRA]
    found += [
        Case("short", ("mysql", "-p", WORDY), WORDY),
        Case("short", ("mysql", f"-p{WORDY}"), WORDY),
        Case("short", ("docker", "login", "-u", "me", "-p", RANDOM), RANDOM),
        Case("short", ("curl", "-u", f"me:{RANDOM}", "https://host"), RANDOM),
        Case("list", ("train", f"lr=1,token={RANDOM}"), RANDOM),
        Case("list", ("train", f"lr=1,token={RANDOM},epochs=3"), RANDOM),
        Case("list", ("az", f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={RANDOM}==;Suffix=y"), RANDOM),
        Case("cut", ("train", f"password=abc {RANDOM}"), RANDOM),
        Case("json", ("train", f'{{"password": "{RANDOM}"}}'), RANDOM),
        Case("json", ("train", f'cfg={{"db": {{"password": "{RANDOM}"}}, "a": 1}}'), RANDOM),
        Case("json", ("train", f"{{'token': '{RANDOM}'}}"), RANDOM),
        Case("json", ("train", f"logger={{token: {RANDOM}, a: 1}}"), RANDOM),
        Case("script", ("sh", "-c", f"export WANDB_API_KEY={RANDOM}; train --epochs 3"), RANDOM),
        Case("script", ("sh", "-c", f"train --token {RANDOM} --epochs 3"), RANDOM),
        Case("script", ("bash", "-lc", f"wandb login {HEX40} && yolo train"), HEX40),
        Case("login", ("wandb", "login", HEX40), HEX40),
        Case("login", ("wandb", "login", "--relogin", f"--key={HEX40}"), HEX40),
    ]
    found += [Case("shape", ("train", value), value) for value in SHAPES.values()]
    found += [Case("shape", f"note {value} here", value) for value in SHAPES.values()]
    found += [Case("shape", f"name: {value}\nbatch: 16\n", value) for value in SHAPES.values()]
    found += [Case("header", ("curl", "-H", f"{header}{RANDOM}", "https://host"), RANDOM) for header in HEADERS]
    found += [Case("header", ("sh", "-c", f"curl -H '{header}{RANDOM}' https://host"), RANDOM) for header in HEADERS]
    found += [Case("url", ("train", url.format(RANDOM)), RANDOM) for url in URLS]
    found += [Case("url", f"source={url.format(RANDOM)} failed", RANDOM) for url in URLS]
    found += [Case("text", text.format(RANDOM), RANDOM) for text in TEXTS]
    return found


def yaml_secrets() -> list[Case]:
    """Return YAML that holds a secret each."""
    return [Case("yaml", text.format(RANDOM), RANDOM) for text in YAMLS]


HARMLESS_COMMANDS = (
    "yolo detect train data=coco8.yaml model=yolo26n.pt epochs=100 imgsz=640 batch=16 device=0,1",
    "python train.py --keypoints 17 --monkey=5 author=me tokenizer=bpe --pin-memory",
    "torchrun --nproc_per_node 4 --rdzv_endpoint=host:29500 train.py --name über/läuft",
    f"docker run --gpus all -p 8080:80 -u 1000:1000 -v /data:/data nvcr.io/nvidia/pytorch@sha256:{HEX40}abcdef01",
    f"git checkout {HEX40}",
    f"train run_id={UUID} commit={HEX40} --resume {UUID}",
    "gpu-report compare a b --key default --baseline-dir shelf",
    "python train.py --sort-key name --label-key=class --key-frames 3 --max_tokens=512 --num-tokens 77",
    "train https://github.com/ultralytics/assets/releases/download/v8.3.0/coco8.zip",
    "train https://medium.com/@user/post https://host/img@2x.png http://host:8080/a?x=1&page=2",
    "ssh -p 2222 me@host nvidia-smi",
    "mkdir -p runs/train/exp2",
    "train --password-file /run/secrets/db",
    "train token=null auth=none password= --token",
    "train pass=3 passes=2 --bypass-cache --compass north",
    "train ssh_key=~/.ssh/id_ed25519 --key /etc/keys/a.pem",
    "train --cache ram --optimizer AdamW lr0=0.001 lrf=1e-2 hsv_h=0.015 close_mosaic=10",
    "train name=exp-2026-11-22T21:00:00 project=runs/a1b2c3d4 seed=1234567890",
    "env CUDA_VISIBLE_DEVICES=0,1 OMP_NUM_THREADS=8 PYTHONPATH=src:lib PWD=/home/me python -m train",
    'train classes=[0,1,2] model=\'{a: 1}\' cfg={"lr": 0.1, "freeze": [1, 2]}',
    "python -c import(torch);print(torch.__version__)",
    "train secretary=ann tokenize=true keyboard=de keyring=none authority=a passenger=2 passive=1",
)
HARMLESS_TEXTS = (
    "NVRM: Xid (PCI:0000:65:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker-9f3c1e7a5b2d.scope,mems_allowed=0",
    "Memory cgroup out of memory: Killed process 77 (python) total-vm:123456kB, anon-rss:99999kB, UID:0 pgtables:1kB",
    "KeyError: 'model'",
    "RuntimeError: CUDA error: device-side assert triggered",
    "FileNotFoundError: /data/coco/images/train2017/000000000009.jpg",
    'File "/home/me/train.py", line 31, in <module>',
    "nvme nvme0: I/O 12 QID 3 timeout, aborting",
    'audit: type=1400 audit(1700000000.123:45): apparmor="DENIED" operation="open" key=(null)',
    "x509: Loaded X.509 cert 'Build time autogenerated kernel key: 6ccece7e4c6c0d1f6149f3dd27dfcc5cbb419ea1'",
    "pci 0000:65:00.0: [10de:2330] type 00 class 0x030200",
    f"model yolo26n.pt sha256:{HEX40}",
    f"run {UUID} resumed at epoch=5",
    "token embedding of size 512, 77 tokens: ok",
    "the key was not found; keys: a, b, c",
    "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm python: reading directory lblock 0",
    "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: dc00004000010090",
    "C:/me@home/x.yaml",
    "see https://docs.ultralytics.com/modes/train/#arguments or mail me@example.org",
    "https://host/d.zip?x=1&page=2&size=640",
)
HARMLESS_YAMLS = (
    "task: detect\nmode: train\nmodel: yolo26n.pt\ndata: coco8.yaml\nepochs: 100\nbatch: 16\n",
    "auth: null\ntoken: ~\npassword: ''\nkey: default\n",
    "token:\nbatch: 16\n",
    "sort_key: name\nkeypoints: [17, 3]\nmax_tokens: 512\nlabel_key: class\n",
    f"id: {UUID}\ncommit: {HEX40}\n",
    "names:\n  0: person\n  1: key\n  2: passenger\n  3: cookie jar\n",
    "path: /data/coco\ntrain: images/train2017\nval: images/val2017\ndownload: https://ultralytics.com/assets/coco8.zip\n",
    "lr0: 0.01\nlrf: 0.01\nmomentum: 0.937\nhsv_h: 0.015\nclose_mosaic: 10\n",
    "device: [0, 1]\nsave_dir: /runs/detect/train3\nproject: null\nname: null\n",
    "cfg: {a: 1, b: [1, 2], c: 'x: y'}\n",
)
HARMLESS_WORDS = (
    *(
        f"{name}=16"
        for name in ("batch", "epochs", "imgsz", "workers", "patience", "seed", "nbs", "max_det", "tokens", "pass")
    ),
    *(f"--{name}" for name in ("tokenizer", "keypoints", "passthrough", "secretariat", "authors", "monkey", "hotkey")),
    *(f"{name}=bpe" for name in ("tokenizer", "tokenize", "key_type", "cache_key", "group_key", "image_key", "author")),
    *(HEX40, HEX40[:7], UUID, "sha256:" + HEX40, "v8.3.0", "yolo26n-seg.pt", "coco128.yaml", "2026-11-22T21:00:00Z"),
    *("nvcr.io/nvidia/pytorch:25.01-py3", "ultralytics/ultralytics:latest", "registry.local:5000/me/train:1a2b3c4"),
    *(
        "/data/a b/c.yaml",
        "s3://bucket/path/data.zip",
        "gs://bucket/x",
        "hdfs://nn:8020/x",
        "file:///data/x",
        "me@host:/x",
    ),
    *("a=b=c", "x:y", "0:1", "16:9", "host:8080", "[::1]:80", "C:\\data\\x", "--", "-", "=", ":", "{}", "[]", "{a: 1}"),
    *(
        "key=default",
        "--key=name",
        "key=val2",
        "p=0.5",
        "-p=0.5",
        "hash=auto",
        "login=none",
        "pin_memory=True",
        "salt=no",
    ),
    *("lr=1,momentum=0.9", "a=1;b=2", "mosaic=1.0", "mixup=0.15", "copy_paste=0.1", "degrees=0.0", "cos_lr=True"),
    *(
        "AdamW",
        "SGD",
        "RT-DETR",
        "yolo26x",
        "COCO2017",
        "ImageNet1k",
        "fp16",
        "bf16",
        "cuda:0",
        "0,1,2,3",
        "cpu",
        "mps",
    ),
)
HARMLESS_ARGUMENTS = [
    "warmup_bias_lr=0.1",
    "weight_decay=0.0005",
    "amp=True",
    "half=False",
    "plots=True",
    "rect=True",
    "val=False",
    "fraction=0.5",
    "freeze=10",
    "cls=0.5",
    "box=7.5",
    "dfl=1.5",
    "pose=12.0",
    "kobj=1.0",
    "nbs=64",
    "iou=0.7",
    "conf=0.25",
    "vid_stride=2",
    "single_cls=False",
    "resume=True",
]


def harmless() -> list[Case]:
    """Return texts without a secret, many of which look as if."""
    found = [Case("command", tuple(command.split(" "))) for command in HARMLESS_COMMANDS]
    found += [Case("word", ("train", word)) for word in (*HARMLESS_WORDS, *HARMLESS_ARGUMENTS)]
    return found + [Case("text", text) for text in HARMLESS_TEXTS]


def harmless_yamls() -> list[Case]:
    """Return YAML without a secret."""
    return [Case("yaml", text) for text in HARMLESS_YAMLS]
