//! Writes about the whole database: settings, and the embedding space.

use super::Transaction;
use crate::model::space::Space;
use crate::records::record::{Record, SettingRecord, SpaceRecord};
use crate::state::{embedder, settings};
use crate::{Error, Result};

impl Transaction<'_> {
    /// Changes a setting; `docs/memory.md` lists names and values.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let value = settings::canonical(name, value)?;
        if self.state.setting(name)?.as_deref() == Some(value.as_str()) {
            return Ok(());
        }
        if name == embedder::FINGERPRINT
            && let Some(recorded) = self.state.fingerprint()?.filter(|recorded| *recorded != value)
        {
            return Err(Error::OtherEmbedder { recorded, given: value });
        }
        if name == "analyser" && self.state.bound() > 0 {
            return Err(Error::Invalid(format!(
                "setting analyser cannot change to {value:?}: \
                     the database holds items that were indexed with the present analyser"
            )));
        }
        self.push(Record::Setting(SettingRecord { name: name.to_owned(), value }))
    }

    /// Declares a field, or a member of one by a path such as `meta.topic`, of type `text`, `number` or `bool`: filters
    /// on it read a column instead of each item. `none` ends that.
    pub fn declare(&mut self, field: &str, form: &str) -> Result<()> {
        self.set(&settings::declaration(field), form)
    }

    /// The state that the transaction changes, for tests of what another program left behind.
    #[cfg(test)]
    pub(crate) fn state_mut(&mut self) -> &mut crate::state::State {
        &mut self.state
    }

    /// Defines the embedding space of the database. It cannot change afterwards.
    pub fn define_space(&mut self, space: &Space) -> Result<()> {
        space.check()?;
        let record = SpaceRecord::from(space);
        match &self.state.meta.space {
            Some(known) if **known == record => Ok(()),
            Some(known) => Err(Error::Vector(format!(
                "the space cannot change: the database has {}; given {}",
                Space::try_from(known.as_ref())?,
                space
            ))),
            None => self.push(Record::Space(record)),
        }
    }
}
