//! A header that was read and understood, as JS holds it: what the model is, and how it fits under any options.

use std::rc::Rc;

use js_sys::Promise;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use super::call::Call;
use super::facts::plain;
use super::js_error::{halted_to_js, to_js};
use super::options::open_config;
use super::web_host::{JsHost, WebHost, device_bytes, linear_memory_bytes, now};
use crate::error::{Error, ErrorKind};
use crate::runtime::web::{JsSource, WebSource};
use crate::runtime::{
    Inspection, Kernel, KernelRates, OpenConfig, Precision, Rates, WeightSource, measure,
};

/// What the exports mean in TypeScript; paths as seen from the built module.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = "
import type { Fit, ModelCard } from '../../options.js';
import type { KernelRates } from '../../protocol.js';
";

/// Reads the header behind `source`; resolves to an [`Inspected`]. The options are checked first.
#[wasm_bindgen(unchecked_return_type = "Promise<Inspected>")]
pub fn inspect(
    host: JsHost,
    source: JsSource,
    #[wasm_bindgen(unchecked_param_type = "EngineOptions")] options: JsValue,
    call: &Call,
) -> Promise {
    let call = call.clone();
    future_to_promise(async move {
        let host = Rc::new(host);
        // As `open` counts it: before anything of the model is in memory.
        let base_bytes = linear_memory_bytes();
        let device_bytes = device_bytes(&host);
        open_config(&options, device_bytes, base_bytes).map_err(|error| to_js(&error))?;
        let source = Rc::new(WebSource::new(source));
        let web_host = WebHost::new(&host, &call, source.buffer_bytes());
        let inspection =
            Inspection::read(source, &web_host).await.map_err(|halted| halted_to_js(&halted))?;
        Ok(Inspected { inspection, device_bytes, base_bytes }.into())
    })
}

/// A header that was read and understood.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Inspected {
    inspection: Inspection,
    device_bytes: Option<u64>,
    base_bytes: u64,
}

#[wasm_bindgen]
impl Inspected {
    /// What the model is.
    #[wasm_bindgen(unchecked_return_type = "ModelCard")]
    #[must_use]
    pub fn card(&self) -> JsValue {
        plain(&self.inspection.card())
    }

    /// Names for the kernels that [`Inspected::measure`] would time; none for a model that cannot run.
    ///
    /// # Errors
    /// `invalid_option`.
    pub fn kernels(
        &self,
        #[wasm_bindgen(unchecked_param_type = "EngineOptions")] options: &JsValue,
    ) -> Result<Vec<String>, JsValue> {
        let config = self.config(options)?;
        let precision = match config.precision {
            Precision::Fast => "fast",
            Precision::Exact => "exact",
        };
        let kernels = self.inspection.kernels(&config).unwrap_or_default();
        let name = |kernel: &Kernel| format!("{} {} {precision}", kernel.ty.name(), kernel.n_in);
        Ok(kernels.iter().map(name).collect())
    }

    /// Times the kernel of this index for at most about 300 ms.
    ///
    /// # Errors
    /// `invalid_option`, or why the model cannot run.
    #[wasm_bindgen(unchecked_return_type = "KernelRates")]
    pub fn measure(
        &self,
        #[wasm_bindgen(unchecked_param_type = "EngineOptions")] options: &JsValue,
        index: usize,
    ) -> Result<JsValue, JsValue> {
        let config = self.config(options)?;
        let kernels = self.inspection.kernels(&config).map_err(|error| to_js(&error))?;
        let Some(kernel) = kernels.get(index) else {
            let message = format!("the model has no kernel {index} to measure");
            return Err(to_js(&Error::new(ErrorKind::Misuse, message)));
        };
        Ok(plain(&measure(kernel, config.precision, &now)))
    }

    /// How the model fits, and how fast it will be where `rates` has two numbers for each kernel: weights per second when decoding and
    /// in prefill.
    ///
    /// # Errors
    /// `invalid_option`.
    #[wasm_bindgen(unchecked_return_type = "Fit")]
    pub fn fit(
        &self,
        #[wasm_bindgen(unchecked_param_type = "EngineOptions")] options: &JsValue,
        rates: &[f64],
        storage_bytes_per_second: Option<f64>,
    ) -> Result<JsValue, JsValue> {
        let kernels = rates.as_chunks().0.iter().map(|&[decode, prefill]| KernelRates {
            decode_weights_per_second: decode,
            prefill_weights_per_second: prefill,
        });
        let rates = Rates { kernels: kernels.collect(), storage_bytes_per_second };
        Ok(plain(&self.inspection.fit(&self.config(options)?, Some(&rates))))
    }
}

impl Inspected {
    fn config(&self, options: &JsValue) -> Result<OpenConfig, JsValue> {
        open_config(options, self.device_bytes, self.base_bytes).map_err(|error| to_js(&error))
    }
}
