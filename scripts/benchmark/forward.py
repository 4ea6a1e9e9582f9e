"""(c) Forward efficiency: what `cargo bench --bench forward` prints, on the page."""

from __future__ import annotations

import subprocess
from argparse import Namespace

from . import report
from .programs import ROOT, run_json
from .report import Target
