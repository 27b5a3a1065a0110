//! What each kind of test computes.

use std::collections::BTreeMap;

use burn::prelude::*;
use jepa_gguf::schema::{Hparams, PosInterp, PredictorKind};
use jepa_models::nn::linear;
use jepa_models::plan::{Cem, Noise};
use jepa_models::predictor::{PredictInput, TrainedOn};
use jepa_models::world::{AcWorld, LewmWorld, POSE_DIM, Rollout, WorldModel, update_pose};
use jepa_models::{EncodeOptions, Encoded, Head, Jepa, Pixels, Pool, Predictor, TokenIds, Trace};

use super::case::{Options, PlannerOptions, Test};
use crate::arrays::{Array, Values};

/// Outputs of a test by role.
type Outputs = BTreeMap<String, TensorData>;

/// Plays the tests of one model file.
pub(super) struct Player<B: Backend> {
    model: Jepa<B>,
    native_interp: PosInterp,
    inputs: BTreeMap<String, Array>,
    device: B::Device,
    predictor: Option<Predictor<B>>,
    head: Option<Head<B>>,
}

impl<B: Backend> Player<B> {
    pub(super) fn new(model: Jepa<B>, inputs: BTreeMap<String, Array>, device: B::Device) -> Self {
        let native_interp = model.encoder().config().hparams.pos_interp;
        Self { model, native_interp, inputs, device, predictor: None, head: None }
    }

    /// The outputs of a test; `None` for a kind that is not known.
    pub(super) fn play(&mut self, test: &Test) -> Result<Option<Outputs>, String> {
        let interp = pos_interp(&test.options)?.unwrap_or(self.native_interp);
        self.model.encoder_mut().set_pos_interp(interp);
        Ok(Some(match test.kind.as_str() {
            "encode" | "encode_masked" => self.encode(test)?.1,
            "quant" => self.quant(test)?,
            "predict_masked" => self.predict_masked(test, self.tensor(test, "context")?)?,
            "classify" => self.classify(test)?,
            "ac_encode" => {
                let frames = self.ac_world()?.observe(self.pixels(test)?).map_err(words)?;
                outputs([("reps", frames.flatten::<3>(1, 2).into_data())])
            }
            "ac_predict" => self.ac_predict(test)?,
            "ac_rollout" => self.ac_rollout(test)?,
            "ac_cem" => self.ac_cem(test)?,
            "pose_update" => self.pose_update(test)?,
            "lewm_predict" => {
                let (states, actions) = (self.tensor(test, "emb")?, self.tensor(test, "actions")?);
                let predicted =
                    self.lewm_world()?.predictor.forward(states, actions, &mut Trace::none()).map_err(words)?;
                outputs([("pred", predicted.into_data())])
            }
            "lewm_rollout" => self.lewm_rollout(test)?,
            "lewm_cost" => self.lewm_cost(test)?,
            _ => return Ok(None),
        }))
    }

    fn encode(&self, test: &Test) -> Result<(Encoded<B>, Outputs), String> {
        let context = match test.kind.as_str() {
            "encode_masked" => Some(self.ids(test, "ctx_ids")?),
            _ => None,
        };
        let options = EncodeOptions { context: context.as_ref(), layers: &[] };
        let encoder = self.model.encoder();
        let encoded = encoder.encode_with(self.pixels(test)?, options, &mut Trace::none()).map_err(words)?;
        let pool = match test.options.pooling.as_deref() {
            Some("cls") => Pool::Cls,
            Some("mean") => Pool::Mean,
            _ => Pool::Auto,
        };
        let mut out = outputs([
            ("tokens", encoded.tokens.to_data()),
            ("pooled", encoded.pooled(pool).map_err(words)?.into_data()),
        ]);
        if encoder.config().check_pool(Pool::State).is_ok() {
            out.insert("emb".into(), encoded.pooled(Pool::State).map_err(words)?.into_data());
        }
        out.extend(encoded.hier.iter().enumerate().map(|(k, x)| (format!("hier{k}"), x.to_data())));
        out.extend(encoded.hier_concat(n_hier_in(self.model.hparams())).map(|x| ("hier_concat".into(), x.into_data())));
        Ok((encoded, out))
    }

    /// The encoder's outputs, and the predictor's on the encoder's rows where the case has ids for it.
    fn quant(&mut self, test: &Test) -> Result<Outputs, String> {
        let (encoded, mut out) = self.encode(test)?;
        if test.inputs.contains_key("ctx_ids") {
            let rows = encoded.hier_concat(n_hier_in(self.model.hparams())).unwrap_or(encoded.tokens);
            let ids = self.ids(test, "ctx_ids")?;
            ids.check(rows.dims()[0], rows.dims()[1]).map_err(words)?;
            out.extend(self.predict_masked(test, ids.gather(rows))?);
        }
        Ok(out)
    }

    fn predict_masked(&mut self, test: &Test, context: Tensor<B, 3>) -> Result<Outputs, String> {
        let (ctx_ids, tgt_ids) = (self.ids(test, "ctx_ids")?, self.ids(test, "tgt_ids")?);
        let modality = match test.options.modality.as_deref() {
            Some("image") => TrainedOn::Picture,
            _ => TrainedOn::Clip,
        };
        let mask_index = test.options.mask_index.unwrap_or(1);
        let Predictor::Masked(predictor) = self.predictor()? else {
            return Err("the model has no masked predictor".into());
        };
        let input = PredictInput { context: &ctx_ids, targets: &tgt_ids, mask_index, modality };
        let predicted = predictor.forward(context, input, &mut Trace::none()).map_err(words)?;
        let mut out = outputs([("pred", predicted.targets.into_data())]);
        out.extend(predicted.context.map(|x| ("context".into(), x.into_data())));
        Ok(out)
    }

    fn classify(&mut self, test: &Test) -> Result<Outputs, String> {
        let encoded = self.encode(test)?.0;
        if self.head.is_none() {
            self.head = Some(self.model.load_head().map_err(words)?);
        }
        let (pooled, logits) = match self.head.as_ref().expect("loaded just above") {
            Head::Linear(head) => {
                let pooled = encoded.pooled(Pool::Auto).map_err(words)?;
                (pooled.clone(), head.forward(pooled))
            }
            Head::Attentive(head) => {
                let pooled = head.pool(encoded.tokens, &mut Trace::none());
                (pooled.clone(), linear(&head.cls, pooled))
            }
        };
        let top1 = logits.clone().argmax(1).squeeze_dim::<1>(1);
        Ok(outputs([("logits", logits.into_data()), ("pooled", pooled.into_data()), ("top1", top1.into_data())]))
    }

    fn ac_predict(&mut self, test: &Test) -> Result<Outputs, String> {
        let (latents, actions, states) =
            (self.tensor(test, "latents")?, self.tensor(test, "actions")?, self.tensor(test, "states")?);
        let predicted =
            self.ac_world()?.predictor.forward(latents, actions, states, &mut Trace::none()).map_err(words)?;
        Ok(outputs([("pred", predicted.into_data())]))
    }

    fn ac_rollout(&mut self, test: &Test) -> Result<Outputs, String> {
        let latents: Tensor<B, 3> = self.tensor(test, "latents")?;
        let [batch, tokens, dim] = latents.dims();
        let (actions, pose) = (self.rows(test, "actions", batch)?, self.rows(test, "pose", batch)?);
        let world = self.ac_world()?;
        let frames = latents.reshape([batch, 1, tokens, dim]);
        let rollout = Rollout::start(&world, frames, vec![Vec::new(); batch], pose).map_err(words)?;
        let rolled = rollout.run(&world, &actions).map_err(words)?;
        let width = world.state_dim();
        let n = rolled.states.first().map_or(0, Vec::len) / width;
        let poses = TensorData::new(rolled.states.concat(), [batch, n, width]);
        Ok(outputs([("pred", rolled.frames.into_data()), ("poses", poses)]))
    }

    fn ac_cem(&mut self, test: &Test) -> Result<Outputs, String> {
        let planner = test.options.planner.ok_or("has no planner options")?;
        let noise = Noise::Given(self.array(test, "noise")?.values.to_f64());
        let one = |x: Tensor<B, 2>| x.unsqueeze::<3>();
        let (start, goal) = (one(self.tensor(test, "context")?), one(self.tensor(test, "goal")?));
        let pose = self.rows(test, "pose", 1)?.remove(0);
        let world = self.ac_world()?;
        let plan = cem(planner).plan(&world, start, goal, &pose, &noise).map_err(words)?;
        let shape = [plan.actions.len(), world.action_dim()];
        Ok(outputs([("actions", TensorData::new(plan.actions.concat(), shape))]))
    }

    fn pose_update(&self, test: &Test) -> Result<Outputs, String> {
        let (poses, actions) = (self.array(test, "pose")?.values.to_f64(), self.array(test, "action")?.values.to_f64());
        let rows = poses.chunks_exact(POSE_DIM).zip(actions.chunks_exact(POSE_DIM));
        let new: Vec<f32> = rows
            .flat_map(|(pose, action)| {
                let row = |x: &[f64]| <[f64; POSE_DIM]>::try_from(x).expect("chunks have this length");
                update_pose(&row(pose), &row(action)).map(|v| v as f32)
            })
            .collect();
        let n = new.len() / POSE_DIM;
        Ok(outputs([("new_pose", TensorData::new(new, [n, POSE_DIM]))]))
    }

    fn lewm_rollout(&mut self, test: &Test) -> Result<Outputs, String> {
        // Stored as [batch, frames, chans, height, width].
        let pixels: Tensor<B, 5> = self.tensor(test, "pixels")?;
        let [batch, seeds, ..] = pixels.dims();
        let actions = self.rows(test, "actions", batch)?;
        let world = self.lewm_world()?;
        let frames = world.observe(Pixels::from_normalised_clips(pixels.swap_dims(1, 2))).map_err(words)?;
        let past = (seeds - 1) * world.action_dim();
        let (between, ahead): (Vec<_>, Vec<_>) =
            actions.iter().map(|row| (row[..past].to_vec(), row[past..].to_vec())).unzip();
        let rollout = Rollout::start(&world, frames.clone(), between, Vec::new()).map_err(words)?;
        let rolled = rollout.run(&world, &ahead).map_err(words)?;
        Ok(outputs([
            ("seed_emb", frames.squeeze_dim::<3>(2).into_data()),
            ("pred", rolled.frames.squeeze_dim::<3>(2).into_data()),
        ]))
    }

    fn lewm_cost(&mut self, test: &Test) -> Result<Outputs, String> {
        let (pred, goal): (Tensor<B, 3>, Tensor<B, 2>) = (self.tensor(test, "pred")?, self.tensor(test, "goal")?);
        let last = pred.dims()[1] - 1;
        let cost = self.lewm_world()?.cost(pred.narrow(1, last, 1), goal.unsqueeze_dim(1));
        Ok(outputs([("cost", cost.into_data())]))
    }

    fn predictor(&mut self) -> Result<&Predictor<B>, String> {
        if self.predictor.is_none() {
            self.predictor = Some(self.model.load_predictor().map_err(words)?);
        }
        Ok(self.predictor.as_ref().expect("loaded just above"))
    }

    fn ac_world(&mut self) -> Result<AcWorld<B>, String> {
        let encoder = self.model.encoder().clone();
        match self.predictor()? {
            Predictor::Ac(predictor) => Ok(AcWorld { encoder, predictor: predictor.clone() }),
            _ => Err("the model has no action-conditioned predictor".into()),
        }
    }

    fn lewm_world(&mut self) -> Result<LewmWorld<B>, String> {
        let encoder = self.model.encoder().clone();
        match self.predictor()? {
            Predictor::Lewm(predictor) => Ok(LewmWorld { encoder, predictor: predictor.clone() }),
            _ => Err("the model has no LeWM predictor".into()),
        }
    }

    fn array(&self, test: &Test, role: &str) -> Result<&Array, String> {
        let name = test.inputs.get(role).ok_or_else(|| format!("has no input {role}"))?;
        self.inputs.get(name).ok_or_else(|| format!("tensor {name} is not in the file"))
    }

    fn tensor<const D: usize>(&self, test: &Test, role: &str) -> Result<Tensor<B, D>, String> {
        let array = self.array(test, role)?;
        match (&array.values, <[usize; D]>::try_from(array.shape.as_slice())) {
            (Values::F32(values), Ok(shape)) => {
                Ok(Tensor::from_data(TensorData::new(values.clone(), shape), &self.device))
            }
            _ => Err(format!(
                "{role} is {} of shape {:?}, wanted f32 with {D} axes",
                array.values.type_name(),
                array.shape
            )),
        }
    }

    /// An f32 array as one run of values per batch element.
    fn rows(&self, test: &Test, role: &str, batch: usize) -> Result<Vec<Vec<f32>>, String> {
        let array = self.array(test, role)?;
        match &array.values {
            Values::F32(values) if batch > 0 && !values.is_empty() && values.len() % batch == 0 => {
                Ok(values.chunks_exact(values.len() / batch).map(<[f32]>::to_vec).collect())
            }
            _ => Err(format!(
                "{role} is {} of shape {:?}, wanted f32 for a batch of {batch}",
                array.values.type_name(),
                array.shape
            )),
        }
    }

    fn pixels(&self, test: &Test) -> Result<Pixels<B>, String> {
        match self.array(test, "pixels")?.shape.len() {
            4 => Ok(Pixels::from_normalised_images(self.tensor(test, "pixels")?)),
            _ => Ok(Pixels::from_normalised_clips(self.tensor(test, "pixels")?)),
        }
    }

    fn ids(&self, test: &Test, role: &str) -> Result<TokenIds, String> {
        let array = self.array(test, role)?;
        let (Values::I64(values), [_, n]) = (&array.values, &array.shape[..]) else {
            let found = format!("{} of shape {:?}", array.values.type_name(), array.shape);
            return Err(format!("{role} is {found}, wanted integers [batch, ids]"));
        };
        let rows = values
            .chunks((*n).max(1))
            .map(|row| {
                row.iter().map(|&id| usize::try_from(id).map_err(|_| format!("token id {id} is negative"))).collect()
            })
            .collect::<Result<Vec<_>, _>>()?;
        TokenIds::per_element(rows).map_err(words)
    }
}

fn outputs<const N: usize>(roles: [(&str, TensorData); N]) -> Outputs {
    roles.map(|(role, data)| (role.to_owned(), data)).into()
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Hierarchical outputs that the predictor reads; all of them without a predictor.
fn n_hier_in(hparams: &Hparams) -> usize {
    match hparams.pred.as_ref().map(|pred| &pred.kind) {
        Some(PredictorKind::Masked(masked)) => masked.n_hier_in,
        _ => hparams.enc.hier_layers.len(),
    }
}

/// The rule that a test asks for, in the words of the case files.
fn pos_interp(options: &Options) -> Result<Option<PosInterp>, String> {
    match options.pos_interp.as_deref() {
        None | Some("trilinear") => Ok(None),
        Some("bicubic_offset01") => Ok(Some(PosInterp::Offset)),
        Some("bicubic_size") => Ok(Some(PosInterp::Size)),
        Some("bicubic_antialias") => Ok(Some(PosInterp::Antialias)),
        Some(other) => Err(format!(
            "options.pos_interp is {other}, wanted bicubic_offset01, bicubic_size, bicubic_antialias or trilinear"
        )),
    }
}

/// The reference's planner with the settings of a test.
fn cem(options: PlannerOptions) -> Cem {
    let mut cem = Cem {
        horizon: options.rollout,
        samples: options.samples,
        top_k: options.topk,
        iterations: options.cem_steps,
        ..Cem::for_ac()
    };
    let gripper = cem.free.len() - 1;
    for (i, free) in cem.free.iter_mut().enumerate() {
        (free.momentum_mean, free.momentum_std) = if i == gripper {
            (options.momentum_mean_gripper, options.momentum_std_gripper)
        } else {
            (free.std, free.bound) = (options.maxnorm, Some(options.maxnorm));
            (options.momentum_mean, options.momentum_std)
        };
    }
    cem.fixed_from = options.close_gripper.map(|step| (step, cem.free[gripper].index, 1.0));
    cem
}
