// SPDX-License-Identifier: Apache-2.0
// The schemas of the services the daemon offers, as protoc describes them: one serialized
// google.protobuf.FileDescriptorSet, imports included.  Made at build time, for server reflection.
#ifndef XPL_PROTO_DESCRIPTORS_H_
#define XPL_PROTO_DESCRIPTORS_H_

#include <stddef.h>

extern const unsigned char xpl_proto_descriptors[];
extern const size_t xpl_proto_descriptors_len;

#endif
