"""Which words are masked, with how many bytes, and what stays."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marin_profile.redact import Redactor
from marin_profile.redact.names import host_masks

REDACTOR = Redactor(
    homes=("/data/people/bob", "/home/alice", "/root"),
    users=("alice", "bob.b", "zoë"),
    hosts=("tpu-a-0", "tpu-a-1", "node7.corp.example"),
)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/home/alice/run/train.py:12", "/home/xxxxx/run/train.py:12"),
        ("/home/somebody_else_com", "/home/xxxxxxxxxxxxxxxxx"),
        ("/mnt/nfs/home/carol/a.py", "/mnt/nfs/home/xxxxx/a.py"),
        ("/Users/Dora Q/a.py", "/Users/xxxx Q/a.py"),
        ("experimental/users/erik/a.py", "experimental/users/xxxx/a.py"),
        ("/data/people/bob/a.py", "/xxxx/xxxxxx/xxx/a.py"),
        ("/data/people/bobby/a.py", "/data/people/bobby/a.py"),
        ('{"source":"/home/alice"}', '{"source":"/home/xxxxx"}'),
        ("/home/jos\\u00e9/a.py", "/home/xxxxxxxxx/a.py"),
        ("/root/a.py, file:/root", "/xxxx/a.py, file:/xxxx"),
        ("jit(f)/root/mul /rooted x/root", "jit(f)/root/mul /rooted x/root"),
        ("by alice (alice-laptop)", "by xxxxx (xxxxx-laptop)"),
        ("malice alice2 run_alice alice_1", "malice alice2 run_alice alice_1"),
        ("line\\nalice\nalice", "line\\nxxxxx\nxxxxx"),
        ("zoë zoës zo\\u00eb", "xxxx zoës xxxxxxxx"),
        ("bob.b bob", "xxxxx bob"),
        ("/tmp/alice/x", "/tmp/xxxxx/x"),
        ("tpu-a-0:tpu-a-1, tpu-a-10", "dxx-a-0:dxx-a-1, tpu-a-10"),
        ("node7 node7.corp.example node7.other", "cxxxx cxxxx.axxx.bxxxxxx cxxxx.other"),
        ('"body": "TUzvUgFNTElSAQ=="', '"body": "TUzvxxxxxxxxxxxx"'),
        ("layer/attention/dot_general", "layer/attention/dot_general"),
        (r'{"f":"\/home\/carol\/a.py"}', r'{"f":"\/home\/xxxxx\/a.py"}'),
        (r"\u002fhome\u002Fcarol\u002fa.py", r"\u002fhome\u002Fxxxxx\u002fa.py"),
        (r"\u002fjos\u00e9\u002falice", r"\u002fjos\u00e9\u002fxxxxx"),
        ("jit(f)=>/home/carol=>add", "jit(f)=>/home/xxxxx=>add"),
        ("jit(f)=>/root/a=>alice", "jit(f)=>/xxxx/a=>xxxxx"),
        ("//home//carol//a.py", "//home//xxxxx//a.py"),
        ("/nethome/carol/a.py", "/nethome/xxxxx/a.py"),
        ("file%3A%2F%2F%2Fhome%2Fcarol%2Fa", "file%3A%2F%2F%2Fhome%2Fxxxxx%2Fa"),
        (r"C:\Users\Carol\a.py", r"C:\Users\xxxxx\a.py"),
        (r'{"f":"C:\\Users\\Carol\\a.py"}', r'{"f":"C:\\Users\\xxxxx\\a.py"}'),
        ("C:/Users/Carol/a.py", "C:/Users/xxxxx/a.py"),
        ("/HOME/CAROL/A.PY", "/HOME/xxxxx/A.PY"),
        (r"\/data\/people\/bob\/a", r"\/xxxx\/xxxxxx\/xxx\/a"),
        ("//data//people//bob//a", "//xxxx//xxxxxx//xxx//a"),
        ("ALICE Alice MALICE", "xxxxx xxxxx MALICE"),
        ("TPU-A-0 Node7.Corp.Example", "dxx-a-0 cxxxx.axxx.bxxxxxx"),
        ("node8.corp.example", "node8.axxx.bxxxxxx"),
        ("tpu-a-0.c.project-1.internal:80", "dxx-a-0.x.xxxxxxx-x.xxxxxxxx:80"),
        ("tpu-a-0.xplane.pb tpu-a-1.trace.json.gz", "dxx-a-0.xplane.pb dxx-a-1.trace.json.gz"),
        ("token=password=abcd1234", "token=xxxxxxxxxxxxxxxxx"),
        ("<carol.smith+x@example.co.uk>", "<xxxxx.xxxxxxx@xxxxxxx.xx.xx>"),
        ("f@model.py fusion@2.5 @main add@gpu", "f@model.py fusion@2.5 @main add@gpu"),
        ("WANDB_API_KEY=0123456789abcdef", "WANDB_API_KEY=xxxxxxxxxxxxxxxx"),
        (r"{\"HF_TOKEN\": \"hf_AbC123xyz\"}", r"{\"HF_TOKEN\": \"xxxxxxxxxxxx\"}"),
        ("--token=s3cr3t/abc== -v", "--token=xxxxxxxxxxxx -v"),
        ("AWS_SECRET_ACCESS_KEY='aB/c+d1234'", "AWS_SECRET_ACCESS_KEY='xxxxxxxxxx'"),
        ("db_password: correct-horse", "db_password: xxxxxxxxxxxxx"),
        ("max_tokens=4096 token=12345678 key=attention/kernel", None),
        ("key/kernel token_embedding/add secret sort_key=fusion.12345", None),
        ("homes/a at_home users home/", None),
    ],
)
def test_masks(text, masked):
    masked = text if masked is None else masked
    assert REDACTOR.text(text) == masked
    assert REDACTOR.bytes(text.encode()) == masked.encode()
    assert REDACTOR.text(masked) == masked
    assert len(masked.encode()) == len(text.encode())


WORDS = st.sampled_from(
    [
        *("/home/", "/root", "alice", "tpu-a-0", "bob.b", "zoë", "TUzv", "\\n", "/", "_", " ", '"'),
        *("\0", "\\/home\\/", "\\u002f", "=>", "a@b.com", "_token=", "ABCDEFG8", "ALICE", "%2f"),
        *(".corp.example", "nethome", "\\Users\\", "/data/people/bob"),
    ]
)


@given(st.lists(WORDS | st.text(max_size=3), max_size=8).map("".join))
def test_length_is_kept_and_a_second_pass_changes_nothing(text):
    masked = REDACTOR.text(text)
    assert len(masked.encode()) == len(text.encode())
    assert REDACTOR.text(masked) == masked
    assert REDACTOR.bytes(text.encode()) == masked.encode()


def test_what_needs_no_mask_is_handed_back():
    text = b"layer/attention"
    assert REDACTOR.bytes(text) is text


def test_hosts_stay_different_in_order_and_inside_each_other():
    hosts = [f"pod{pod}-w-{worker}" for pod in ("ab", "b") for worker in range(12)]
    masks = host_masks([*hosts, "podab"])
    assert len(set(masks.values())) == 25
    assert sorted(masks) == sorted(masks, key=masks.__getitem__)
    assert all(len(name) == len(mask) for name, mask in masks.items())
    assert masks["podab"] in masks["podab-w-3"]
    assert not any("pod" in mask for mask in masks.values())


def test_many_hosts_stay_different():
    hosts = [f"gke-{index * 7919 % 65536:04x}z" for index in range(600)]
    masks = host_masks(hosts)
    assert len(set(masks.values())) == 600
    assert sorted(masks) == sorted(masks, key=masks.__getitem__)


def test_masked_hosts_stay_as_they_are():
    masks = host_masks(["tpu-b-0", "node7"])
    again = host_masks(["a-host-of-this-machine", *masks.values()])
    assert {mask: again[mask] for mask in masks.values()} == {m: m for m in masks.values()}


def test_file_names_keep_their_format():
    redactor = Redactor(hosts=("tpu-a-0", "trace"))
    assert redactor.file_name("tpu-a-0.xplane.pb") == "axx-a-0.xplane.pb"
    assert redactor.file_name("trace.trace.json.gz") == "bxxxx.trace.json.gz"
    assert redactor.file_name("perfetto_trace.json.gz") == "perfetto_trace.json.gz"


@pytest.fixture
def person(monkeypatch, tmp_path):
    """A user of the name given, with a home reached through a link, on the host given."""

    def become(user: str, host: str) -> Path:
        home = tmp_path / "link"
        (tmp_path / "real").mkdir()
        home.symlink_to(tmp_path / "real")
        for variable in ("LOGNAME", "USER", "USERNAME", "SUDO_USER", "HOSTNAME"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("USER", user)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setattr(socket, "gethostname", lambda: host)
        return home

    return become


def test_here_knows_home_user_and_host(person):
    home = person("mallory", "box.corp")
    redactor = Redactor.here(["tpu-a-0"])
    text = f"{home}/a {home.resolve()}/b mallory box box.corp tpu-a-0"
    masked = redactor.text(text)
    for secret in (home.name, home.resolve().name, "mallory", "box", "corp", "tpu"):
        assert secret not in masked
    assert masked.endswith("/b xxxxxxx axx axx.bxxx cxx-a-0")


@pytest.mark.parametrize("user", ["root", "ubuntu", "runner", "al", "max", "adam", "1000"])
def test_names_that_identify_nobody_or_mean_an_op_stay_words(person, user):
    person(user, "localhost")
    redactor = Redactor.here()
    assert user not in redactor.users
    assert "localhost" not in redactor.hosts
    assert redactor.text(f"{user} localhost /home/{user}/a") == (
        f"{user} localhost /home/{'x' * len(user)}/a"
    )


def test_here_on_this_very_machine():
    redactor = Redactor.here()
    assert os.path.realpath(Path.home()) in {*redactor.homes, "/"}
    assert redactor.text(socket.gethostname()) == host_masks(redactor.hosts).get(
        socket.gethostname(), socket.gethostname()
    )


def test_time_grows_with_the_text_alone():
    """Runs in which a pattern could begin everywhere."""
    for run in ("/", "a", "home/", "\\", "a.", "@a", "_token=", "/home", "a@b."):
        text = (run * 200_000)[:200_000].encode()
        assert len(REDACTOR.bytes(text + b" alice")) == 200_006
