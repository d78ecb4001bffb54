import pytest
from torch import nn

from tformer import LoRALinear, reference

B, T, I, O, RANK = 2, 5, 7, 11, 3


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("root", [True, False])
def test_lora(parity, root, bias):
    base = nn.Linear(I, O, bias=bias)
    options = {"alpha": 5.0, "dropout": 0.5, "root": root}
    module = parity.module(LoRALinear(base, RANK, **options))
    twin = reference.from_torch(module)
    assert isinstance(twin, reference.LoRALinear)
    array, tensor = parity.numbers(B, T, I)
    parity.same(twin(array), module(tensor))
    assert abs(twin(array) - twin.base(array)).max() > 0.1


def test_a_merged_one_is_refused():
    module = LoRALinear(nn.Linear(I, O), RANK)
    module.merge()
    with pytest.raises(ValueError, match="module is merged: unmerge it first"):
        reference.from_torch(module)
