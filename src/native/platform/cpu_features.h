// Instructions beyond a set's own that a kernel may ask for when it is planned.
#pragma once

namespace anydml {

// VNNI of AVX-512: products of bytes, four for each sum of 32 bits.
bool has_vnni();

// AMX's products of tiles of bytes. Linux wants to be asked before a process uses its registers.
bool has_amx();

}  // namespace anydml
