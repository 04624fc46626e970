"""A compact SDXL LoRA trainer on diffusers, peft and accelerate (the ``train`` extra).

torch is imported inside functions: importing this package costs nothing.
"""
