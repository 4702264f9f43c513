"""Attention on a GPU, by PyTorch's scaled_dot_product_attention."""
