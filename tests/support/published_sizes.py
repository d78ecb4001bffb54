"""How many parameters the published models have, as Hugging Face's classes count them.

Without the layers that guess further tokens, which these classes leave out too. Each
stands in its family's `SIZES`.
"""

COUNTS = {
    "mixtral": {
        "mixtral-8x7b": 46_702_792_704,
        "mixtral-8x22b": 140_630_071_296,
    },
    "qwen3_moe": {
        "qwen3-30b-a3b": 30_532_122_624,
        "qwen3-235b-a22b": 235_093_634_560,
    },
    "gpt_oss": {
        "gpt-oss-20b": 20_914_757_184,
        "gpt-oss-120b": 116_829_156_672,
    },
    "deepseek_v3": {"deepseek-v3": 671_026_419_200},
    "glm4_moe": {
        "glm-4.5": 352_797_829_024,
        "glm-4.5-air": 106_852_251_264,
    },
    "minimax_m2": {"minimax-m2": 228_689_764_864},
    "qwen3_next": {"qwen3-next-80b-a3b": 79_674_391_296},
    "qwen3_5_text": {"qwen3.5-9b": 8_953_803_264},
    "kimi_linear": {"kimi-linear-48b-a3b": 49_122_681_728},
}
EACH = [(kind, name) for kind, names in COUNTS.items() for name in names]
