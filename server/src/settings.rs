//! What all connections of one server share.

use std::sync::Arc;

use hyperman_http1::ServerConfig;

use crate::config::Config;
use crate::gate::Gate;

/// See the module's words.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) http1: Arc<ServerConfig>,
    pub(crate) http2: Arc<hyperman_http2::Config>,
    pub(crate) gate: Gate,
}

impl Settings {
    pub(crate) fn new(mut config: Config) -> Arc<Self> {
        config.bound_times();
        let http1 = config.http1();
        let http2 = config.http2();
        let gate = Gate::new(config.connections);
        Arc::new(Settings { config, http1, http2, gate })
    }
}
