"""What type checkers refuse: each line below is an error."""

import numpy as np

import anydml

x = np.ones((2, 2), np.float32)
anydml.cumulative_summation("a")
anydml.cumulative_summation(x, axis="last")
anydml.cumulative_summation(x, keepdims=True)
anydml.relu(None)
anydml.relu("a")
anydml.relu(3.0)
anydml.relu(x, device=1)
anydml.add(x, "a")
anydml.reduce(x, "summ")
anydml.softmax(x, dim=0)
anydml.padding(x, 1, 1, mode="edgy")
anydml.add(x, x, activation="rely")
anydml.max_pooling(x)
anydml.max_pooling(x, kernel_size=2)
anydml.join(x, "a")
anydml.split(x, [0.5])
anydml.cast(x, 3)
anydml.convolution(x)
anydml.no_such_function(x)
anydml.Device(feature_level=object())
