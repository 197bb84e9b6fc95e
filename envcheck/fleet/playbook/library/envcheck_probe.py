#!/usr/bin/python
"""Ansible module: runs envcheck's probe on a host and returns what it learned.

The probe travels inside this file, so that a host is asked in one go and nothing stays behind.
Python 3.8 is enough.
"""

from __future__ import annotations

import base64
import io
import os
import signal
import subprocess
import sys
import zipfile
import zlib

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: envcheck_probe
short_description: Run envcheck's probe on a host
description:
  - Reads the driver, CUDA and Python stack of a host. Changes nothing.
options:
  options:
    description: What the probe is asked, as JSON text.
    type: str
    required: true
  seconds:
    description: After how long the probe is ended.
    type: float
    default: 300
"""

RETURN = """
answer:
  description: JSON of the probe, compressed by zlib, as base64.
  type: str
  returned: success
"""

ARCHIVE = "@ARCHIVE@"
"""The probe as a zip file in base64; filled in when a run begins."""

_LARGEST = 64 << 20
_WORDS = 2000


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "options": {"type": "str", "required": True},
            "seconds": {"type": "float", "default": 300.0},
        },
        supports_check_mode=True,
    )
    folder = os.path.join(module.tmpdir, "envcheck-probe")
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(ARCHIVE))) as archive:
        archive.extractall(folder)
    child = subprocess.Popen(
        # Neither the user's packages nor his variables change the probe itself; the programs that
        # it starts see them.
        [sys.executable, "-I", "-S", "-B", folder, module.params["options"]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        start_new_session=True,
    )
    try:
        stdout, stderr = child.communicate(timeout=module.params["seconds"])
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        module.fail_json(msg="the probe did not end within {:g} s".format(module.params["seconds"]))
    if child.returncode != 0 or not stdout.strip() or len(stdout) > _LARGEST:
        words = stderr.decode("utf-8", "replace").strip()[-_WORDS:]
        last = words.splitlines()[-1] if words else "it said nothing"
        module.fail_json(
            msg=f"the probe ended with status {child.returncode}: {last}",
            details=words,
        )
    answer = base64.b64encode(zlib.compress(stdout, 9)).decode("ascii")
    module.exit_json(changed=False, answer=answer)


if __name__ == "__main__":
    main()
