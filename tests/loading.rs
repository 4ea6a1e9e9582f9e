//! A model file that cannot be used is refused when it loads, and the error says what is wrong with it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;

use candle_core::quantized::gguf_file::Value;
use prism_judge::model::{Decoder, Gguf, ModelError, TextModel};
use prism_judge::service::{
    AnswerSlot, CacheSettings, EngineSettings, Judge, JudgeConfig, LimitSettings, Numerics, OpenError, OptionOverrides,
};
use support::tiny::{Shape, Tiny};

fn open(path: &Path) -> Result<(), ModelError> {
    let gguf = Gguf::open(path)?;
    Decoder::load(&gguf, Numerics::F32, 1)?;
    TextModel::from_gguf(&gguf)?;
    Ok(())
}

fn tiny() -> Tiny {
    Tiny::new(Shape::default(), 4)
}

fn refused(tiny: &Tiny) -> String {
    match tiny.load(1) {
        Ok(_) => panic!("the file was loaded"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_missing_file_is_named_by_the_model_and_by_the_judge() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absent.gguf");
    let error = open(&path).unwrap_err().to_string();
    assert!(error.contains("absent.gguf") && error.contains("No such file"), "{error}");
    let config = JudgeConfig {
        model_name: "absent".to_owned(),
        model_path: path,
        label_spaces: None,
        prompt_template: None,
        threads: Some(1),
        numerics: Numerics::F32,
        answer_slot: AnswerSlot::Auto,
        overrides: OptionOverrides::default(),
        engine: EngineSettings::default(),
        cache: CacheSettings::default(),
        redis: None,
        limits: LimitSettings::default(),
    };
    assert!(matches!(Judge::open(&config), Err(OpenError::Model(ModelError::File { .. }))));
}

#[test]
fn a_file_that_is_no_gguf_is_named() {
    for bytes in [&b""[..], b"G", b"GGUF", b"GGML\x03\0\0\0", b"{\"model\":\"x\"}", &[0; 4096], &[0xff; 4096]] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let error = open(file.path()).unwrap_err().to_string();
        assert!(error.contains(file.path().to_str().unwrap()), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(open(folder.path()), Err(ModelError::File { .. })));
}

/// The tiny file cut everywhere, and the real one in its header, its tokenizer, its tensor table and its tensors.
#[test]
fn a_truncated_file_is_refused_wherever_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole.gguf"), folder.path().join("cut.gguf"));
    tiny().write(&whole);
    let bytes = std::fs::read(&whole).unwrap();
    let places = (0..2_000).chain((2_000..bytes.len() - 32).step_by(997));
    for at in places.chain([bytes.len() - 33]) {
        std::fs::write(&cut, &bytes[..at]).unwrap();
        let error = Gguf::open(&cut).and_then(|gguf| Decoder::load(&gguf, Numerics::F32, 1)).err();
        let error = error.unwrap_or_else(|| panic!("{at} of {} bytes were loaded", bytes.len()));
        assert!(error.to_string().contains("cut.gguf"), "{error}");
    }

    let Some(model) = support::backbone() else { return };
    let bytes = std::fs::read(model).unwrap();
    for at in [4, 24, 1_000, 500_000, 1_700_000, 2_000_000, bytes.len() / 2, bytes.len() - 1_000] {
        std::fs::write(&cut, &bytes[..at]).unwrap();
        let error = open(&cut).unwrap_err();
        assert!(error.to_string().contains("cut.gguf"), "{error}");
    }
}

/// Found by fuzzing: the reader of the header multiplies and divides by whatever the file says.
#[test]
fn a_header_of_impossible_sizes_is_refused_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sizes.gguf");
    tiny().write(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let name = b"token_embd.weight";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap() + name.len() + 4;
    for sizes in [[1_u64 << 63, 2], [1 << 33, 1 << 33], [1 << 40, 48], [u64::MAX, u64::MAX], [0, 48], [48, 0]] {
        for (index, size) in sizes.into_iter().enumerate() {
            bytes[at + 8 * index..][..8].copy_from_slice(&size.to_le_bytes());
        }
        std::fs::write(&path, &bytes).unwrap();
        let error = open(&path).unwrap_err().to_string();
        assert!(error.contains("tensor token_embd.weight is empty or larger than the file"), "{error}");
    }

    let mut aligned = tiny();
    aligned.metadata.push(("general.alignment".to_owned(), Value::U32(0)));
    let error = refused(&aligned);
    assert!(error.contains("its header makes no sense"), "{error}");

    for key in ["embedding_length", "block_count", "attention.head_count", "attention.key_length", "context_length"] {
        let mut huge = tiny();
        huge.set(&format!("llama.{key}"), Value::U64(1 << 62));
        let error = refused(&huge);
        assert!(error.contains("impossible shape"), "{key}: {error}");
    }
}

#[test]
fn an_architecture_that_is_not_supported_is_named_with_those_that_are() {
    let mut tiny = tiny();
    tiny.set("general.architecture", Value::String("mamba".to_owned()));
    let error = refused(&tiny);
    assert!(error.contains("architecture mamba") && error.contains("supported: llama"), "{error}");
}

#[test]
fn a_tensor_that_is_missing_or_of_another_shape_is_named() {
    let names: Vec<String> = tiny().tensors.keys().cloned().collect();
    assert_eq!(names.len(), 20);
    for name in names {
        let mut without = tiny();
        without.tensors.remove(&name);
        let error = refused(&without);
        assert!(error.contains(&name), "{name}: {error}");

        let mut wider = tiny();
        let (shape, data) = wider.tensors.get_mut(&name).unwrap();
        // The rows of the embedding are what defines the vocabulary.
        let axis = shape.len() - 1;
        let size = data.len() / shape[axis];
        shape[axis] += 1;
        data.extend(vec![0.5; size]);
        let error = refused(&wider);
        assert!(error.contains(&name) && error.contains("shape") && error.contains("expected"), "{name}: {error}");
    }
}

#[test]
fn a_weight_that_is_not_finite_is_refused_with_the_name_of_its_tensor() {
    for name in tiny().tensors.keys() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut bad = tiny();
            let values = bad.values_mut(name);
            let at = values.len() - 1;
            values[at] = value;
            let error = refused(&bad);
            // Query, key and value are checked as one, and so are gate and up.
            let named = error.contains(name) || {
                let (start, _) = name.split_at(name.find("attn_").or(name.find("ffn_")).unwrap_or(0));
                error.contains(&format!("{start}attn_q/k/v")) || error.contains(&format!("{start}ffn_gate/up"))
            };
            assert!(named && error.contains(&value.to_string()), "{name}: {error}");
        }
    }
}

#[test]
fn a_shape_that_cannot_be_is_refused_and_not_computed() {
    for key in ["embedding_length", "block_count", "feed_forward_length", "attention.head_count", "context_length"] {
        let mut zero = tiny();
        zero.set(&format!("llama.{key}"), Value::U32(0));
        let error = refused(&zero);
        assert!(error.contains("impossible shape"), "{key}: {error}");
    }
    for (heads, kv_heads, head_dim) in [(4, 3, 16), (4, 0, 16), (4, 8, 16), (4, 2, 15), (4, 2, 0)] {
        let mut odd = tiny();
        odd.set("llama.attention.head_count", Value::U32(heads));
        odd.set("llama.attention.head_count_kv", Value::U32(kv_heads));
        odd.set("llama.attention.key_length", Value::U32(head_dim));
        let error = refused(&odd);
        assert!(error.contains("impossible shape"), "{heads} {kv_heads} {head_dim}: {error}");
    }
    for shape in [
        Shape { vocabulary: 143, ..Shape::default() },
        Shape { head_dim: 2, ..Shape::default() },
        Shape { feed_forward: 513, ..Shape::default() },
    ] {
        let error = refused(&Tiny::new(shape, 1));
        assert!(error.contains("too small"), "{error}");
    }
}

#[test]
fn metadata_that_is_missing_or_of_another_kind_is_named() {
    for (key, value) in tiny().metadata {
        let mut other = tiny();
        let text = matches!(value, Value::String(_));
        other.set(&key, if text { Value::U32(7) } else { Value::String("seven".to_owned()) });
        let error = refused(&other);
        assert!(error.contains(&key), "{key}: {error}");

        let mut without = tiny();
        without.metadata.retain(|(name, _)| *name != key);
        // What the format has a default for may be missing; the default of this one gives other shapes.
        if key.ends_with("freq_base") {
            assert!(without.load(1).is_ok());
        } else if key.ends_with("head_count_kv") || key.ends_with("key_length") {
            assert!(refused(&without).contains("shape"));
        } else {
            let error = refused(&without);
            assert!(error.contains(&key), "{key}: {error}");
        }
    }
}

/// Left out in silence, each of these would give a number of another model.
#[test]
fn what_the_decoder_does_not_compute_is_refused() {
    for name in [
        "blk.0.attn_q.bias",
        "blk.1.attn_output.bias",
        "blk.0.attn_q_norm.weight",
        "blk.2.attn_q.weight",
        "output.bias",
    ] {
        let mut more = tiny();
        more.tensors.insert(name.to_owned(), (vec![4], vec![0.5; 4]));
        let error = refused(&more);
        assert!(error.contains("support"), "{error}");
        assert!(error.contains(name) || error.contains("query bias"), "{error}");
    }
    let mut partial = tiny();
    partial.metadata.push(("llama.rope.dimension_count".to_owned(), Value::U32(8)));
    assert!(refused(&partial).contains("8 of 16 dimensions"));
    let mut scaled = tiny();
    scaled.metadata.push(("llama.rope.scaling.type".to_owned(), Value::String("yarn".to_owned())));
    assert!(refused(&scaled).contains("rope scaling"));
}
