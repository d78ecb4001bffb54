"""Hugging Face's modules with the weights of ours: BERT's encoder, Marian, GPT-2."""

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, MarianConfig, MarianMTModel
from transformers.models.bert.modeling_bert import BertConfig, BertEncoder

GPT2_WORDS = (
    *("vocab_size", "n_positions", "n_embd", "n_layer", "n_head"),
    *("activation_function", "resid_pdrop", "embd_pdrop", "attn_pdrop"),
)
NO_DROPOUT = {"attention_dropout": 0.0, "activation_dropout": 0.0, "dropout": 0.0}


def copy(pairs: list[tuple[nn.Module, nn.Module]]) -> None:
    """Copy weights and biases, of (theirs, ours)."""
    for theirs, mine in pairs:
        theirs.load_state_dict(mine.state_dict())


def bert_encoder(ours: nn.Module) -> nn.Module:
    """Make BERT's stack of layers from our post-norm `Encoder` with relu."""
    first = ours.blocks[0]
    config = BertConfig(
        hidden_size=first.attention.d_model,
        num_hidden_layers=len(ours.blocks),
        num_attention_heads=first.attention.num_heads,
        intermediate_size=first.feed_forward.linear1.out_features,
        hidden_act="relu",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-5,
        attn_implementation="sdpa",
    )
    theirs = BertEncoder(config)
    pairs = []
    for new, old in zip(theirs.layer, ours.blocks, strict=True):
        itself = new.attention.self
        pairs += [
            (itself.query, old.attention.q_proj),
            (itself.key, old.attention.k_proj),
            (itself.value, old.attention.v_proj),
            (new.attention.output.dense, old.attention.out_proj),
            (new.attention.output.LayerNorm, old.attention_norm),
            (new.intermediate.dense, old.feed_forward.linear1),
            (new.output.dense, old.feed_forward.linear2),
            (new.output.LayerNorm, old.feed_forward_norm),
        ]
    copy(pairs)
    return theirs.to(first.attention.q_proj.weight.dtype)


def marian(ours: nn.Module, table: Tensor) -> MarianMTModel:
    """Make a MarianMT model from our `Transformer`; `table` holds our sinusoids."""
    c = ours.config
    theirs = MarianMTModel(
        MarianConfig(
            vocab_size=c.vocab_size,
            d_model=c.d_model,
            encoder_layers=c.num_encoder_layers,
            decoder_layers=c.num_decoder_layers,
            encoder_attention_heads=c.num_heads,
            decoder_attention_heads=c.num_heads,
            encoder_ffn_dim=c.d_ff,
            decoder_ffn_dim=c.d_ff,
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=c.pad_id,
            bos_token_id=1,
            eos_token_id=None,
            forced_eos_token_id=None,
            decoder_start_token_id=1,
            max_position_embeddings=c.max_len,
            **NO_DROPOUT,
        )
    )
    sides = (theirs.model.encoder, theirs.model.decoder)
    pairs = []
    for side, stack in zip(sides, (ours.encoder, ours.decoder), strict=True):
        side.embed_positions.weight.data.copy_(table)
        for new, old in zip(side.layers, stack.blocks, strict=True):
            attentions = [(new.self_attn, old.attention)]
            pairs += [
                (new.self_attn_layer_norm, old.attention_norm),
                (new.fc1, old.feed_forward.linear1),
                (new.fc2, old.feed_forward.linear2),
                (new.final_layer_norm, old.feed_forward_norm),
            ]
            if old.cross_attention is not None:
                attentions.append((new.encoder_attn, old.cross_attention))
                pairs.append((new.encoder_attn_layer_norm, old.cross_attention_norm))
            for a, b in attentions:
                names = ("q_proj", "k_proj", "v_proj", "out_proj")
                pairs += [(getattr(a, x), getattr(b, x)) for x in names]
    copy(pairs)
    theirs.model.shared.weight.data.copy_(ours.src_embedding.weight)
    theirs.generation_config.eos_token_id = None
    return theirs.to(ours.src_embedding.weight.dtype)


def gpt2(ours: nn.Module) -> GPT2LMHeadModel:
    """Make a GPT-2 from ours. Its matrices are (in, out), ours (out, in)."""
    c = ours.config
    theirs = GPT2LMHeadModel(
        GPT2Config(
            **{name: c[name] for name in GPT2_WORDS},
            bos_token_id=1,
            eos_token_id=None,
            pad_token_id=0,
        )
    )
    t = theirs.transformer
    copy([(t.wte, ours.embedding), (t.wpe, ours.positions), (t.ln_f, ours.norm)])
    for new, old in zip(t.h, ours.blocks, strict=True):
        a, f = old.attention, old.feed_forward
        copy(
            [
                (new.ln_1, old.attention_norm),
                (new.ln_2, old.feed_forward_norm),
            ]
        )
        for theirs_, mine in (
            (new.attn.c_attn, (a.q_proj, a.k_proj, a.v_proj)),
            (new.attn.c_proj, (a.out_proj,)),
            (new.mlp.c_fc, (f.linear1,)),
            (new.mlp.c_proj, (f.linear2,)),
        ):
            theirs_.weight.data.copy_(torch.cat([p.weight.t() for p in mine], dim=1))
            theirs_.bias.data.copy_(torch.cat([p.bias for p in mine]))
    theirs.generation_config.eos_token_id = None
    return theirs.to(ours.embedding.weight.dtype)


def generate(model, ids: Tensor, tokens: int, **options) -> Tensor:
    """Write so many tokens, which no end token cuts short; return only what is new."""
    with torch.no_grad():
        written = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=tokens,
            use_cache=True,
            **{"do_sample": False, "num_beams": 1, **options},
        )
    return written[:, -tokens:]
