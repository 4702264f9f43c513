"""Models: resources, operators and commands in a JSON file, as DxDispatch runs them.

A model is ``{"resources": {...}, "dispatchables": {...}, "commands": [...]}``. Names, defaults and meanings are
DxDispatch's, with these differences: unknown fields, unless they are allowed, repeated keys and text behind the model
are errors; files lie in the model's folder, unless others are allowed; numbers that a page calls typical defaults may
be left out; INT8 and UINT8 are printed as numbers, not as characters; a binding without elementCount reaches to the end
of its resource, and one of elements is rounded up to the 4 bytes that a tensor's size is rounded up to.

(M1) A model is a file that can be read, of at most 256 MiB.
(M2) Its text is JSON in UTF-8, with comments and trailing commas allowed; lists and objects nest at most 64 deep.
(M3) Fields are those that there are, unless allow_unknown_fields is given, each given once, and none that is needed is
     missing.
(M4) A field holds what it is for: an object, a list, a string, a number, an integer in range.
(M5) A resource or a dispatchable that is named exists; names are printable.
(M6) The name of an enum's member is one, in full or short.
(M7) An initial value is one of its data type.
(M8) Initial values are at least one, of one kind, of a known data type, and inside sizeInBytes; or they are deferred.
(M9) Paths stay in the model's folder, unless allow_outside is given; and no command overwrites the model. What is read
     is looked for in the current folder, too.
(M10) A file with initial values is a regular file that can be read, with whole elements; a .npy file of the type said.
      That of a dispatchable is an ONNX model or a serialised graph, with its constants beside it.
(M11) A dispatchable is an operator that this package has, an ONNX model or a serialised graph; an activation in it one
      that may be fused.
(M12) Bindings name tensors of the desc, and every tensor that wants one has one. What an ONNX model leaves unbound are
      zeros, and its free dimensions 1; a binding may say another shape. A resource that is deferred is the output of an
      ONNX model, as a whole, before it is anything else.
(M13) All resources together take no more memory than the limit.
(M14) What is written fits: a path that can be written to, dimensions that hold the elements.
(M15) An image, .jpg or .png, has FLOAT32 or FLOAT16 elements; one that is read a resampleSize of 3 or 4 channels, one
      that is written dimensions of 1, 3 or 4 channels, no more than the resource has. Pillow reads and writes it.

All of a model is checked before any of it runs.
"""

from .commands import Dispatch, Dispatchable, operator_named
from .model import Model
from .reader import load, loads, read_text
from .timing import Timing

__all__ = ["Dispatch", "Dispatchable", "Model", "Timing", "load", "loads", "operator_named", "read_text"]
