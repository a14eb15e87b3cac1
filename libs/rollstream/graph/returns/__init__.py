"""Returns and advantages: pure functions of rewards, discounts and values."""

from rollstream.graph.returns.gae import gae
from rollstream.graph.returns.lambda_return import lambda_return, td_lambda_error
from rollstream.graph.returns.n_step import n_step_return
from rollstream.graph.returns.off_policy_n_step import off_policy_n_step_return
from rollstream.graph.returns.retrace import retrace
from rollstream.graph.returns.upgo import upgo_return
from rollstream.graph.returns.vtrace import Vtrace, vtrace

__all__ = [
    "Vtrace",
    "gae",
    "lambda_return",
    "n_step_return",
    "off_policy_n_step_return",
    "retrace",
    "td_lambda_error",
    "upgo_return",
    "vtrace",
]
