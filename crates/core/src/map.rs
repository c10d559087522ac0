//! Maps by ids: looked into several times per request, so hashed quickly, with a seed of their own.

use std::collections::HashMap;

pub type IdMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;
