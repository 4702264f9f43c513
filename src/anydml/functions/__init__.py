"""The operators as functions, for those who come from NumPy, PyTorch and DirectMLX.

Any array in (NumPy, a buffer, ``__array_interface__``, DLPack; lists too, where float lists become float32), the same
kind of array out. Expressions of a graph in, expressions out; an array among them is a constant of their graph. What
descs refuse works here: negative axes and strides, empty arrays, unaligned memory. Rules on operands are in
``runtime/interop.py``, all others are the operators' own; ``_apply.py`` has what all functions share.

An operator and its later revisions are one function, which takes the oldest that does what is asked, so that it is
there from the lowest feature level on.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .activation import elu as elu
    from .activation import hard_sigmoid as hard_sigmoid
    from .activation import leaky_relu as leaky_relu
    from .activation import linear as linear
    from .activation import parametric_softplus as parametric_softplus
    from .activation import relu as relu
    from .activation import scaled_elu as scaled_elu
    from .activation import scaled_tanh as scaled_tanh
    from .activation import shrink as shrink
    from .activation import sigmoid as sigmoid
    from .activation import softplus as softplus
    from .activation import softsign as softsign
    from .activation import tanh as tanh
    from .activation import thresholded_relu as thresholded_relu
    from .activation_softmax import hardmax as hardmax
    from .activation_softmax import log_softmax as log_softmax
    from .activation_softmax import softmax as softmax
    from .convolution import convolution as convolution
    from .cumulative import cumulative_product as cumulative_product
    from .cumulative import cumulative_summation as cumulative_summation
    from .element_wise_binary import add as add
    from .element_wise_binary import divide as divide
    from .element_wise_binary import max as max
    from .element_wise_binary import mean as mean
    from .element_wise_binary import min as min
    from .element_wise_binary import modulus_truncate as modulus_truncate
    from .element_wise_binary import multiply as multiply
    from .element_wise_binary import parameterized_relu as parameterized_relu
    from .element_wise_binary import pow as pow
    from .element_wise_binary import subtract as subtract
    from .element_wise_unary import abs as abs
    from .element_wise_unary import clip as clip
    from .element_wise_unary import exp as exp
    from .element_wise_unary import identity as identity
    from .element_wise_unary import log as log
    from .element_wise_unary import negate as negate
    from .element_wise_unary import recip as recip
    from .element_wise_unary import sqrt as sqrt
    from .element_wise_unary import threshold as threshold
    from .fill import fill_value_constant as fill_value_constant
    from .fill import fill_value_sequence as fill_value_sequence
    from .gemm import gemm as gemm
    from .image import upsample_2d as upsample_2d
    from .image import value_scale_2d as value_scale_2d
    from .join import join as join
    from .join import split as split
    from .movement import cast as cast
    from .movement import gather as gather
    from .movement import padding as padding
    from .movement import slice as slice
    from .normalization import batch_normalization as batch_normalization
    from .normalization import local_response_normalization as local_response_normalization
    from .normalization import mean_variance_normalization as mean_variance_normalization
    from .pooling import average_pooling as average_pooling
    from .pooling import lp_pooling as lp_pooling
    from .pooling import max_pooling as max_pooling
    from .quantized_pooling import quantized_linear_average_pooling as quantized_linear_average_pooling
    from .recurrent import gru as gru
    from .recurrent import lstm as lstm
    from .recurrent import rnn as rnn
    from .reduce import reduce as reduce

FUNCTIONS = {
    "abs": "element_wise_unary",
    "add": "element_wise_binary",
    "average_pooling": "pooling",
    "batch_normalization": "normalization",
    "cast": "movement",
    "clip": "element_wise_unary",
    "convolution": "convolution",
    "cumulative_product": "cumulative",
    "cumulative_summation": "cumulative",
    "divide": "element_wise_binary",
    "elu": "activation",
    "exp": "element_wise_unary",
    "fill_value_constant": "fill",
    "fill_value_sequence": "fill",
    "gather": "movement",
    "gemm": "gemm",
    "gru": "recurrent",
    "hard_sigmoid": "activation",
    "hardmax": "activation_softmax",
    "identity": "element_wise_unary",
    "join": "join",
    "leaky_relu": "activation",
    "linear": "activation",
    "local_response_normalization": "normalization",
    "log": "element_wise_unary",
    "log_softmax": "activation_softmax",
    "lp_pooling": "pooling",
    "lstm": "recurrent",
    "max": "element_wise_binary",
    "max_pooling": "pooling",
    "mean": "element_wise_binary",
    "mean_variance_normalization": "normalization",
    "min": "element_wise_binary",
    "modulus_truncate": "element_wise_binary",
    "multiply": "element_wise_binary",
    "negate": "element_wise_unary",
    "padding": "movement",
    "parameterized_relu": "element_wise_binary",
    "parametric_softplus": "activation",
    "pow": "element_wise_binary",
    "quantized_linear_average_pooling": "quantized_pooling",
    "recip": "element_wise_unary",
    "reduce": "reduce",
    "relu": "activation",
    "rnn": "recurrent",
    "scaled_elu": "activation",
    "scaled_tanh": "activation",
    "shrink": "activation",
    "sigmoid": "activation",
    "slice": "movement",
    "softmax": "activation_softmax",
    "softplus": "activation",
    "softsign": "activation",
    "split": "join",
    "sqrt": "element_wise_unary",
    "subtract": "element_wise_binary",
    "tanh": "activation",
    "threshold": "element_wise_unary",
    "thresholded_relu": "activation",
    "upsample_2d": "image",
    "value_scale_2d": "image",
}
"""Function to file. A file is loaded on first use."""

BUILTINS = ("abs", "max", "min", "pow", "slice")
"""Those that ``from anydml import *`` leaves out, as it would replace Python's own."""


def function_of(operator: str) -> str:
    """The name of an operator's function: without the group that the header puts it in, and without its revision."""
    name = operator.removeprefix("ELEMENT_WISE_").removeprefix("ACTIVATION_").lower()
    return name if name in FUNCTIONS else name[:-1]


def load(name: str) -> Any:
    """The function of a name, loading its file where need be."""
    return getattr(import_module(f".{FUNCTIONS[name]}", __name__), name)
