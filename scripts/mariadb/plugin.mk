# Compiles the plugin out of the server's tree; called by build.sh, which names the folders.
include_folders = $(BUILD) $(CAPI)/include $(SOURCE)/generated $(SOURCE)/include $(SOURCE)/sql $(SOURCE)/wsrep-lib/include \
  $(SOURCE)/wsrep-lib/wsrep-API/v26 $(PREFIX)/usr/include/mariadb/server
flags = -std=gnu++17 -O2 -g -fPIC -Wall -Wextra -Werror -Wno-invalid-offsetof -DMYSQL_DYNAMIC_PLUGIN -DHAVE_CONFIG_H -D_FILE_OFFSET_BITS=64 -DDBUG_OFF -DNDEBUG \
  $(include_folders:%=-isystem %)
objects = $(patsubst mariadb/src/%.cc,$(BUILD)/%.o,$(wildcard mariadb/src/*.cc))

$(PLUGINS)/ha_esker.so: $(objects) $(CAPI)/lib/libesker.a
	@mkdir -p $(@D)
	@# The library's symbols stay inside: the server has compression libraries of its own.
	$(CXX) -shared -o $@ $(objects) $(CAPI)/lib/libesker.a -Wl,--exclude-libs,libesker.a -Wl,-Bsymbolic \
	  -L$(PREFIX)/usr/lib/x86_64-linux-gnu -L$(PREFIX)/usr/lib -lmysqlservices -lpthread -lm -ldl

$(BUILD)/%.o: mariadb/src/%.cc scripts/mariadb/plugin.mk
	@mkdir -p $(@D)
	$(CXX) $(flags) -MMD -MP -c $< -o $@

-include $(objects:.o=.d)
